package locksdebug

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// policy permits the page's own style and script, and requests to the page's own server. With
// these requests the page refreshes and filters itself. Nothing else is permitted.
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

// page has the data of the template.
type page struct {
	S       *snapshot
	Title   string
	Refresh int // in seconds
	Lost    int // leases
	Longest float64
	Style   template.CSS
	Script  template.JS
}

var pageTemplate = template.Must(template.New("page").Funcs(functions).Funcs(template.FuncMap{
	"graph":       cycleGraph,
	"orphanGraph": orphanGraph,
	"short":       short,
	"locks":       rows[*lock],
	"leases":      rows[lease],
	"history":     rows[history],
	"head":        head[party],
	"heads":       head[group],
	"more":        func(all []party) int { return max(len(all)-shownWaiters, 0) },
}).Parse(pageText))

// refreshSeconds returns after how many seconds the page refreshes itself, or 0 for never.
func refreshSeconds(asked time.Duration, stopped float64) int {
	if asked == 0 {
		return 0
	}
	return int(math.Ceil(max(asked.Seconds(), refreshShare*stopped)))
}

// rows returns the elements of all that the page lists.
func rows[T any](all []T) []T { return all[:min(len(all), shownRows)] }

// head returns the waiters of a lock, or their stacks, that the page lists.
func head[T any](all []T) []T { return all[:min(len(all), shownWaiters)] }

// rest returns how many of n the page does not list.
func rest(n int) int { return max(n-shownRows, 0) }

// html writes s as a page that refreshes itself.
func (s *snapshot) html(w io.Writer, refresh time.Duration) error {
	p := page{
		S: s, Title: "locks of " + s.Program, Refresh: refreshSeconds(refresh, s.Stopped),
		Style: template.CSS(style), Script: template.JS(script),
	}
	for _, l := range s.Leases {
		if l.State == "lost" {
			p.Lost++
		}
	}
	for _, l := range s.Locks {
		p.Longest = max(p.Longest, longest(l.Waiters))
	}
	if n := len(s.Cycles) + len(s.Orphans) + p.Lost; n > 0 {
		p.Title = fmt.Sprintf("(%d!) %s", n, p.Title)
	}
	return execute(w, pageTemplate, p)
}
