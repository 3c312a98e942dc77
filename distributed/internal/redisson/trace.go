// Package redisson has traces of Redisson's locks: the steps of parties that use a lock, and the
// state of Redis after each step, as the real Redisson leaves it. Another client with this format
// must leave the same state.
package redisson

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Trace is a number of steps, with the state of Redis after each step. Its text has for each step a
// line
//
//	A unlock plain: true; B: true
//
// where party A unlocks the plain lock. The answer to the unlock is true. The answer to B's earlier
// step, which had to wait, is true as well. The line of a step that must wait ends in three dots
// instead of an answer. The answer to an unlock is whether the lock was held. Below the line is,
// with a tab in front, the state after the step: keys with their values and times to live, channels
// with subscribers, and messages published by the step. The lock is called it, and an owner is
// named by its party. Everything that means nothing to Redisson is left out: keys and channels that
// begin with locks_, and zeros in front of a message.
//
// Parties whose names begin with J are Redisson, and parties whose names begin with G are ours.
// Other parties may be either.
type Trace struct {
	Name string
	Text string
}

// Party does one thing with the lock called name, which may take its time: lock, try or unlock. The
// answer is true or false, or describes a failure.
type Party func(op, kind, name string) string

// Stage is where a trace is played.
type Stage struct {
	// Name is the name of the lock. No other name in the database contains it, and it contains no
	// special characters of a pattern.
	Name string
	// Do sends a command to the server. The reply consists of numbers, strings and lists of these.
	// The reply for an absent value is nil.
	Do func(args ...any) any
	// Heard returns the messages so far, each as its channel, a space and its payload, of all
	// channels with Name in their names.
	Heard func() []string
	// Join returns the party of that name, and is called once for each.
	Join func(name string) Party
	// Asleep, if not nil, reports whether a party that waits is in the state where it can be woken.
	Asleep func(name string) bool
}

// patience is how long a step may take.
const patience = 20 * time.Second

type step struct {
	line        string
	actor       string
	op, kind    string
	answer      string // empty if it is not awaited
	next, later string // whose answer to an earlier step is awaited too, and what it is
	state       string
}

var stepLine = regexp.MustCompile(`^(\w+) (lock|try|unlock) (\w+)(?:: (\w+)(?:; (\w+): (\w+))?| \.\.\.)$`)

func (tr Trace) steps() []step {
	var steps []step
	for line := range strings.Lines(strings.TrimSpace(tr.Text)) {
		line = strings.TrimRight(line, "\n")
		if state, ok := strings.CutPrefix(line, "\t"); ok {
			steps[len(steps)-1].state += state + "\n"
			continue
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			panic(fmt.Sprintf("trace %q: line %q", tr.Name, line))
		}
		steps = append(steps, step{
			line: line, actor: m[1], op: m[2], kind: m[3], answer: m[4], next: m[5], later: m[6],
		})
	}
	return steps
}

// Parties returns the names of the parties.
func (tr Trace) Parties() []string {
	names := make(map[string]bool)
	for _, s := range tr.steps() {
		names[s.actor] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Play does the steps, and fails the test at the first step whose result or state differs from the
// text.
func (tr Trace) Play(tb testing.TB, stage Stage) {
	tb.Helper()
	parties := make(map[string]Party)
	for _, name := range tr.Parties() {
		parties[name] = stage.Join(name)
	}
	v := view{stage: stage, owners: make(map[string]string)}
	waiting := make(map[string]chan string)
	await := func(name, want, line string) {
		tb.Helper()
		select {
		case got := <-waiting[name]:
			if got != want {
				tb.Fatalf("%s: %s: the answer of %s is %q", tr.Name, line, name, got)
			}
		case <-time.After(patience):
			tb.Fatalf("%s: %s: no answer of %s. There is\n%s", tr.Name, line, name, v.state(name))
		}
	}
	for _, s := range tr.steps() {
		v.heard = len(stage.Heard())
		answer := make(chan string, 1)
		waiting[s.actor] = answer
		go func() { answer <- parties[s.actor](s.op, s.kind, stage.Name) }()
		if s.answer != "" {
			await(s.actor, s.answer, s.line)
		}
		newest := s.actor
		if s.next != "" {
			await(s.next, s.later, s.line)
			newest = s.next
		}
		got := ""
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			asleep := s.answer != "" || stage.Asleep == nil || stage.Asleep(s.actor)
			if got = v.state(newest); got == s.state && asleep {
				break
			}
			if time.Now().After(end) {
				tb.Fatalf("%s: after %q there is\n%sinstead of\n%s", tr.Name, s.line, got, s.state)
			}
		}
	}
}

// view shows the state of Redis as a text.
type view struct {
	stage  Stage
	owners map[string]string // their parties
	heard  int               // before the present step
	tokens []string          // of the counter, in order
}

var owner = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+`)

// state returns the state of the lock in Redis. An owner that was never seen before belongs to
// party.
func (v *view) state(party string) string {
	do := v.stage.Do
	var lines []string
	for _, key := range list(do("keys", "*"+v.stage.Name+"*")) {
		if strings.HasPrefix(key, ours) {
			continue
		}
		// A key may vanish between two commands: then state looks again.
		kind := fmt.Sprint(do("type", key))
		line := kind + " " + key + ":"
		switch kind {
		case "string":
			line += " " + v.renumbered(key, fmt.Sprint(do("get", key)))
		case "hash":
			var fields []string
			for _, f := range list(do("hkeys", key)) {
				fields = append(fields, fmt.Sprint(" ", v.masked(f, party), "=", do("hget", key, f)))
			}
			sort.Strings(fields)
			line += strings.Join(fields, "")
		case "list":
			line += " " + strings.Join(list(do("lrange", key, 0, -1)), " ")
		case "zset":
			now := list(do("time"))
			before, behindOurs := 0.0, false
			for _, member := range list(do("lrange", strings.Replace(key, "_timeout:", "_queue:", 1), 0, -1)) {
				at, _ := strconv.ParseFloat(fmt.Sprint(do("zscore", key, member)), 64)
				s, _ := strconv.ParseFloat(now[0], 64)
				isOurs := fmt.Sprint(member)[14] == '8' // the version of its UUID
				if isOurs && behindOurs {               // of two waiters of ours the second adds no time
					before += wait.Seconds()
				}
				behindOurs = isOurs
				line += fmt.Sprint(" ", member, " in ", about(at/1000-s+before))
			}
		}
		ttl, _ := strconv.ParseFloat(fmt.Sprint(do("pttl", key)), 64)
		if ttl >= 0 && kind != "list" && kind != "zset" { // a queue expires only without a waiter of Redisson
			line += ", " + about(ttl/1000)
		}
		lines = append(lines, line)
	}
	for _, channel := range list(do("pubsub", "channels", "*"+v.stage.Name+"*")) {
		if !strings.HasPrefix(channel, ours) {
			lines = append(lines, "subscribed "+channel)
		}
	}
	for _, m := range v.stage.Heard()[v.heard:] {
		if !strings.HasPrefix(m, ours) {
			lines = append(lines, "published "+zeros.ReplaceAllString(m, " $1"))
		}
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(v.masked(line, party), v.stage.Name, "it")
	}
	sort.Strings(lines)
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	return text
}

// wait is how long a waiter of Redisson's fair lock lives beyond the waiter before it.
const wait = 5 * time.Minute

// renumbered returns a value as it would be if our tokens were counted like Redisson's, from 1, and
// did not follow the server's clock.
func (v *view) renumbered(key, value string) string {
	if !strings.Contains(key, "_token:") {
		return value
	}
	i := slices.Index(v.tokens, value)
	if i < 0 {
		i = len(v.tokens)
		v.tokens = append(v.tokens, value)
	}
	if len(value) < len("1000000000000") {
		return value
	}
	return strconv.Itoa(i + 1)
}

// ours is the beginning of keys and channels that Redisson does not know.
const ours = "locks_"

var zeros = regexp.MustCompile(` 0+([01])$`)

func (v *view) masked(text, party string) string {
	return owner.ReplaceAllStringFunc(text, func(o string) string {
		if v.owners[o] == "" {
			v.owners[o] = party
		}
		return v.owners[o]
	})
}

// about rounds a time to ten seconds: a trace does not take as long.
func about(seconds float64) string { return fmt.Sprintf("%.0f s", 10*math.Round(seconds/10)) }

// list returns the strings of a reply.
func list(reply any) []string {
	values, _ := reply.([]any)
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = fmt.Sprint(v)
	}
	return all
}
