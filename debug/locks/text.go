package locksdebug

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jucgo/locks/internal/terminal"
)

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

// waiters returns the number of all waiters.
func (s *snapshot) waiters() (n int) {
	for _, l := range s.Locks {
		n += len(l.Waiters)
	}
	return n
}

// summary says in one line what there is.
func (s *snapshot) summary() string {
	return fmt.Sprintf("%s, %s, %s, %s, %s", count(len(s.Cycles), "cycle"), count(len(s.Orphans), "orphan"),
		count(len(s.Locks), "lock"), count(s.waiters(), "waiter"), count(len(s.Leases), "lease"))
}

// printer writes lines.
type printer struct {
	w io.Writer
	s *snapshot
}

func (p printer) line(format string, args ...any) {
	_, _ = io.WriteString(p.w, terminal.Lines(fmt.Sprintf(format+"\n", args...)))
}

// stack writes a stack under a heading.
func (p printer) stack(n int, heading string) {
	if n == 0 {
		return
	}
	p.line("      %s", heading)
	for line := range strings.Lines(p.s.Stacks[n-1]) {
		p.line("        %s", strings.TrimSuffix(line, "\n"))
	}
}

// text writes s for a terminal.
func (s *snapshot) text(w io.Writer) {
	p := printer{w, s}
	p.line("%s (pid %d on %s, %s) at %s", s.Program, s.PID, s.Host, s.Go, s.At.Format(time.RFC3339))
	stopped := fmt.Sprintf("this answer stopped the program for %s at most", duration(s.Stopped))
	if s.NoStacks {
		stopped = "too many to take their stacks, orphans are not looked for"
	}
	p.line("%s; %s; %s", s.summary(), count(s.Goroutines, "goroutine"), stopped)
	for _, c := range s.Cycles {
		p.cycle(c)
	}
	for _, o := range s.Orphans {
		waiters := count(len(o.Waiters), "waiter")
		p.line("\nORPHAN %s is held by %s, which has exited; %s", terminal.Line(o.Lock), o.Owner, waiters)
		p.stack(o.Taken, "acquired at")
	}
	for _, l := range s.Locks {
		p.lock(l)
	}
	actors := s.actors()
	for _, a := range rows(actors) {
		p.actor(a)
	}
	if n := rest(len(actors)); n > 0 {
		p.line("\nand %s more", count(n, "owner"))
	}
	for _, l := range s.Leases {
		p.lease(l)
	}
	for _, h := range s.History {
		p.line("\nHISTORY %s  %d acquired, %d failed, %d lost", terminal.Line(h.Name), h.Acquired, h.Failed, h.Lost)
		p.line("  waits: %s in all, median %s, 99 %% within %s; 99 %% of holds within %s",
			duration(h.Waited), duration(h.WaitMedian), duration(h.Wait99), duration(h.Hold99))
	}
	for _, d := range s.Watched {
		p.watched(d)
	}
}

func (p printer) cycle(c cycle) {
	certain := "nothing inside can end it"
	if !c.Certain {
		certain = "a limit or a shared owner may end it"
	}
	p.line("\nCYCLE of %d, %s", len(c.Steps), certain)
	for _, s := range c.Steps {
		why := "held by"
		if s.Behind {
			why = "behind"
		}
		p.line("  %s waits %s for %s, %s %s", s.Wait.Owner, lasts(s.Wait.Seconds), terminal.Line(s.Lock), why, s.For)
		if s.Wait.At != "" {
			p.line("      at %s", s.Wait.At)
		}
		p.stack(s.Taken, s.For+" acquired it at")
	}
}

func (p printer) lock(l *lock) {
	alert := ""
	if l.Alert != "" {
		alert = strings.ToUpper(l.Alert) + " "
	}
	wait := ""
	if d := longest(l.Waiters); d > 0 {
		wait = ", longest " + duration(d)
	}
	name, waiters := terminal.Line(l.Name), count(len(l.Waiters), "waiter")
	p.line("\nLOCK %s%s  %s %s  %s%s", alert, name, l.Kind, l.Address, waiters, wait)
	for _, h := range l.Holders {
		p.line("  held by %s", h.describe())
		p.stack(h.Taken, "acquired at")
		p.stack(h.Stack, "is at")
	}
	if len(l.Holders) == 0 {
		p.line("  holder unknown")
	}
	for i, w := range l.Waiters {
		p.line("  %3d. %s", i+1, w.describe())
	}
	for _, g := range groups(l.Waiters) {
		p.stack(g.Stack, count(g.Count, "waiter")+" at")
	}
}

// actor is a goroutine or an explicit owner, with all that it holds and waits for.
type actor struct {
	Owner        string
	holds, waits []string
}

// Held and For list the locks that the actor holds, and those that it waits for.
func (a *actor) Held() string { return strings.Join(a.holds, ", ") }
func (a *actor) For() string  { return strings.Join(a.waits, ", ") }

// actors returns the actors of all shown locks. Those come first that hold a lock while they wait.
func (s *snapshot) actors() (all []*actor) {
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
			of(h).holds = append(of(h).holds, l.Name)
		}
		for _, w := range l.Waiters {
			of(w).waits = append(of(w).waits, l.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b *actor) int { return b.urgency() - a.urgency() })
	return all
}

// urgency is larger for an actor that may be in the way of others.
func (a *actor) urgency() int { return 2*min(len(a.holds), 1) + min(len(a.waits), 1) }

func (p printer) actor(a *actor) {
	p.line("\nOWNER %s", a.Owner)
	for _, l := range a.holds {
		p.line("  holds %s", terminal.Line(l))
	}
	for _, l := range a.waits {
		p.line("  waits for %s", terminal.Line(l))
	}
}

// describe says in one line who it is, for how long, and where.
func (p party) describe() string {
	var b strings.Builder
	b.WriteString(p.Owner)
	if p.Goroutine != 0 && p.owner != 0 && p.Goroutine != int64(p.owner) {
		fmt.Fprintf(&b, " in goroutine %d", p.Goroutine)
	}
	fmt.Fprintf(&b, " for %s", lasts(p.Seconds))
	for _, note := range p.notes() {
		b.WriteString(", " + note)
	}
	if p.At != "" {
		b.WriteString(", at " + p.At)
	}
	return b.String()
}

// notes returns what is special about a party.
func (p party) notes() (all []string) {
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
	return all
}

// group is a stack that several waiters have.
type group struct {
	Stack, Count int
	At           string
}

// groups returns the stacks of parties, the most frequent first.
func groups(parties []party) (all []group) {
	for _, p := range parties {
		if p.Stack == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(g group) bool { return g.Stack == p.Stack })
		if i < 0 {
			i = len(all)
			all = append(all, group{Stack: p.Stack, At: p.At})
		}
		all[i].Count++
	}
	slices.SortStableFunc(all, func(a, b group) int { return b.Count - a.Count })
	return all
}

func (p printer) lease(l lease) {
	owner := "between two local owners"
	if l.Owner != nil {
		owner = l.Owner.Owner
	}
	p.line("\nLEASE %s %s %s by %s for %s", l.Store, terminal.Line(l.Name), l.State, owner, lasts(l.Seconds))
	if l.State != "waiting" {
		p.line("  %s", l.times())
	}
	if l.Cause != "" {
		p.line("  %s", terminal.Line(l.Cause))
	}
}

// times says how long the lease lasts, and when it was renewed.
func (l lease) times() string {
	text := fmt.Sprintf("%s left of %s", duration(l.Left), duration(l.TTL))
	switch {
	case l.Fixed:
		text += ", not renewed"
	case l.Renewed != nil:
		text += fmt.Sprintf(", renewed %s ago", duration(*l.Renewed))
	default:
		text += ", no renewal yet"
	}
	if l.Unanswered > 0 {
		text += ", " + count(l.Unanswered, "renewal") + " unanswered"
	}
	if l.Token != 0 {
		text += fmt.Sprintf(", token %d", l.Token)
	}
	return text
}

func (p printer) watched(d description) {
	if d.Error != "" {
		p.line("\nWATCHED %s: %s", terminal.Line(d.Name), terminal.Line(d.Error))
		return
	}
	p.line("\nWATCHED %s %s", terminal.Line(d.Name), d.state())
	for _, h := range d.Holders {
		p.line("  held by %s", h)
	}
	for i, w := range d.Waiters {
		p.line("  %3d. %s", i+1, w)
	}
}

// state says whether the lock is held, and how many wait.
func (d description) state() string {
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

// String says in one line who it is.
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
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}
