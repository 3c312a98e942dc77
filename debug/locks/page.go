package locksdebug

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jucgo/locks/internal/terminal"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// policy permits the page's own style and script, and requests to the page's own server, by which
// the page refreshes and filters itself. It permits nothing else.
var policy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; "+
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'", hash(style), hash(script))

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// shownWaiters is how many waiters of a lock the page lists.
const shownWaiters = 50

// shownRows is how many locks, leases, goroutines and names of the history the page lists.
const shownRows = 200

// refreshShare is how many times longer the page waits than its answer stopped the program.
const refreshShare = 100

// page is what the template shows.
type page struct {
	S       *snapshot
	Title   string
	Time    string
	Refresh int // in seconds
	Lost    int
	Waiters int
	Longest string
	Filter  string
	Style   template.CSS
	Script  template.JS
}

// pageTemplate has functions of one snapshot, which html sets in a clone.
var pageTemplate = template.Must(template.New("page").Funcs(functions(new(snapshot))).Parse(pageText))

func functions(s *snapshot) template.FuncMap {
	return template.FuncMap{
		"graph":       cycleGraph,
		"orphanGraph": orphanGraph,
		"bar":         bar,
		"state":       description.state,
		"lasts":       lasts,
		"duration":    duration,
		"time": func(seconds *float64) string {
			if seconds == nil {
				return ""
			}
			return duration(*seconds)
		},
		"notes": func(p party) string {
			notes := p.notes()
			if p.State != "" {
				notes = append(notes, p.State)
			}
			return strings.Join(notes, ", ")
		},
		"place": func(n int) int { return n + 1 },
		"head":  func(all []party) []party { return all[:min(len(all), shownWaiters)] },
		"more":  func(all []party) int { return max(len(all)-shownWaiters, 0) },
		"groups": func(all []party) []group {
			g := groups(all)
			return g[:min(len(g), shownWaiters)]
		},
		"locks":      rows[*lock],
		"leases":     rows[lease],
		"goroutines": func() []*actor { return rows(s.actors()) },
		"history":    rows[history],
		"rest":       rest,
		"waitAt":     func(g group) string { return count(g.Count, "waiter") + " at" },
		"stack": func(n int, heading string) template.HTML {
			if n == 0 {
				return ""
			}
			text := s.Stacks[n-1]
			const folded = `<details data-key="%s"><summary>%s <code>%s</code></summary><pre>%s</pre></details>` + "\n"
			return template.HTML(fmt.Sprintf(folded,
				escape(heading), escape(heading), escape(at(text)), escape(text)))
		},
	}
}

var escape = template.HTMLEscapeString

// refreshSeconds returns after how many seconds the page refreshes itself, or 0 for never.
func refreshSeconds(asked time.Duration, stopped float64) int {
	if asked == 0 {
		return 0
	}
	return int(math.Ceil(max(asked.Seconds(), refreshShare*stopped)))
}

// rows returns what the page lists of all.
func rows[T any](all []T) []T { return all[:min(len(all), shownRows)] }

// rest returns how many of n the page does not list.
func rest(n int) int { return max(n-shownRows, 0) }

// html writes s as a page that refreshes itself.
func (s *snapshot) html(w io.Writer, refresh time.Duration) error {
	p := page{
		S: s, Time: s.At.Format("15:04:05 MST"), Refresh: refreshSeconds(refresh, s.Stopped),
		Waiters: s.waiters(), Filter: s.filter,
		Style: template.CSS(style), Script: template.JS(script),
	}
	for _, l := range s.Leases {
		if l.State == "lost" {
			p.Lost++
		}
	}
	var wait float64
	for _, l := range s.Locks {
		wait = max(wait, longest(l.Waiters))
	}
	p.Longest = duration(wait)
	alarm := ""
	if n := len(s.Cycles) + len(s.Orphans) + p.Lost; n > 0 {
		alarm = "(" + strconv.Itoa(n) + "!) "
	}
	p.Title = alarm + "locks of " + s.Program
	t, err := pageTemplate.Clone()
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Funcs(functions(s)).Execute(&b, p); err != nil {
		return err
	}
	_, err = io.WriteString(w, terminal.Lines(b.String())) // names have any characters
	return err
}
