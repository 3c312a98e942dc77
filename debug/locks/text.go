package locksdebug

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/jucgo/locks/internal/terminal"
)

//go:embed text.txt
var textText string

var textTemplate = template.Must(template.New("text").Funcs(functions).Parse(textText))

// functions are the functions that both templates call.
var functions = map[string]any{
	"duration": duration,
	"lasts":    lasts,
	"count":    count,
	"longest":  longest,
	"groups":   groups,
	"actors":   rows[*actor],
	"rest":     rest,
	"line":     terminal.Line,
	"upper":    strings.ToUpper,
	"join":     strings.Join,
	"place":    func(index int) int { return index + 1 },
}

// text writes s for a terminal.
func (s *snapshot) text(w io.Writer) error { return execute(w, textTemplate, s) }

// execute runs a template of either kind on data, whose names may have any characters.
func execute(w io.Writer, t interface{ Execute(io.Writer, any) error }, data any) error {
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	_, err := io.WriteString(w, terminal.Lines(b.String()))
	return err
}

// duration writes seconds for people: "12 ms", "3.2 s", "5 min 12 s", "3 h 5 min".
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// lasts writes a time that may be unknown.
func lasts(seconds *float64) string {
	if seconds == nil {
		return "an unknown time"
	}
	return duration(*seconds)
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Waiters returns the number of all waiters.
func (s *snapshot) Waiters() (n int) {
	for _, l := range s.Locks {
		n += len(l.Waiters)
	}
	return n
}

// folded is a stack with a heading.
type folded struct {
	Heading, At string
	Lines       []string
}

// Stack returns the stack with a number, or nil if no stack has it.
func (s *snapshot) Stack(n int, heading string) *folded {
	if n == 0 {
		return nil
	}
	text := s.Stacks[n-1]
	return &folded{heading, at(text), strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
}

// actor is a goroutine or an explicit owner, with all that it holds and waits for.
type actor struct {
	Owner        string
	Holds, Waits []string
}

// Actors returns the actors of all shown locks. Actors that hold a lock while they wait come
// first.
func (s *snapshot) Actors() (all []*actor) {
	byOwner := make(map[string]*actor)
	of := func(p party) *actor {
		a := byOwner[p.Owner]
		if a == nil {
			a = &actor{Owner: p.Owner}
			byOwner[p.Owner] = a
			all = append(all, a)
		}
		return a
	}
	for _, l := range s.Locks {
		for _, h := range l.Holders {
			of(h).Holds = append(of(h).Holds, l.Name)
		}
		for _, w := range l.Waiters {
			of(w).Waits = append(of(w).Waits, l.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b *actor) int { return b.urgency() - a.urgency() })
	return all
}

// urgency is larger for an actor that may be in the way of others.
func (a *actor) urgency() int { return 2*min(len(a.Holds), 1) + min(len(a.Waits), 1) }

// Elsewhere reports whether an owner acts in a goroutine that is not the owner.
func (p party) Elsewhere() bool {
	return p.Goroutine != 0 && p.owner != 0 && p.Goroutine != int64(p.owner)
}

// Notes returns the properties of a party, such as "exited" and "shared", in one text.
func (p party) Notes() string {
	var all []string
	if p.Exited {
		all = append(all, "exited")
	}
	if p.Shared {
		all = append(all, "shared")
	}
	if p.Holds > 1 {
		all = append(all, count(p.Holds, "hold"))
	}
	if p.Limited {
		all = append(all, "with a limit")
	}
	if p.Store {
		all = append(all, "waits in the store")
	}
	return strings.Join(all, ", ")
}

// group is a stack that several waiters have.
type group struct{ Stack, Count int }

// groups returns the stacks of parties, the most frequent first.
func groups(parties []party) (all []group) {
	for _, p := range parties {
		if p.Stack == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(g group) bool { return g.Stack == p.Stack })
		if i < 0 {
			i = len(all)
			all = append(all, group{Stack: p.Stack})
		}
		all[i].Count++
	}
	slices.SortStableFunc(all, func(a, b group) int { return b.Count - a.Count })
	return all
}

// State says whether the lock is held, and how many wait.
func (d description) State() string {
	state := "free"
	if d.Held {
		state = "held"
		if d.Shared {
			state = "shared"
		}
	}
	if d.Waiting < 0 {
		return state + ", waiters unknown"
	}
	return state + ", " + count(d.Waiting, "waiter")
}

// String describes the party in one line.
func (d described) String() string {
	var parts []string
	for _, part := range []string{d.Label, d.Owner} {
		if part != "" {
			parts = append(parts, terminal.Line(part))
		}
	}
	if d.Host != "" || d.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d on %s", d.PID, terminal.Line(d.Host)))
	}
	if d.Seconds != nil {
		parts = append(parts, "for "+duration(*d.Seconds))
	}
	if d.Left > 0 {
		parts = append(parts, duration(d.Left)+" left")
	}
	if d.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", d.Token))
	}
	if d.Permits != 0 {
		parts = append(parts, fmt.Sprintf("permits %d", d.Permits))
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}
