package deadlock

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/syncq"
)

// Refuse switches the refusal of acquisitions that would close a cycle, and reports whether it was
// on. It may be called at any time.
//
// While it is on, of the acquisitions that make up a cycle the last one fails at once: LockContext with an
// error that matches [locks.ErrDeadlock], Lock with a panic with that very value, TryLockFor by
// returning false. An acquisition with a time limit or a context that can end is refused like
// one without, as all that it could do is to come to its end, and one that closes a cycle in which
// another wait has a limit is as well. A TryLock or TryLockContext never waits, and so is never refused.
//
// The refused party has all the holds that it had, and is in no queue. It should release them and
// start again.
//
// No acquisition is refused without a cycle. So a cycle that an explicit owner might open, because it holds
// one of the locks and may act in another goroutine, is left alone; [Find] shows it. The same is true of a
// cycle that a condition's waiter closes as it comes back to its lock, since a wait has to return with the lock, and of
// cycles, and acquisitions under way, that are older than the switching on.
//
// While it is on, those who have to wait queue up one at a time, and each looks at what it
// would wait for, which takes longer with longer queues on the way. Others pay nothing.
func Refuse(on bool) (was bool) { return syncq.Refuse(on) }

// Record switches the recording of where locks are taken, and reports whether it was on. It may
// be called at any time. What was taken before is not known; switching off forgets everything.
//
// While it is on, every acquisition but a re-entry costs a stack trace, a microsecond or so. While it
// is off, it costs nothing.
func Record(on bool) (was bool) { return syncq.SetRecording(on) }

// Lock says which lock it is about, and does not keep it in memory.
type Lock struct {
	Type    string  // such as "reentrant.Mutex"
	Key     any     // its key in a set of package named, else nil
	Address uintptr // tells it from others while it exists
}

// String returns the type with the key or, without one, the address.
func (l Lock) String() string {
	switch key := l.Key.(type) {
	case nil:
		return fmt.Sprintf("%s(%#x)", l.Type, l.Address)
	case string:
		return fmt.Sprintf("%s(%q)", l.Type, key)
	default:
		return fmt.Sprintf("%s(%v)", l.Type, key)
	}
}

func describe(s *syncq.Sync) Lock {
	l := Lock{Type: "lock", Address: reflect.ValueOf(s).Pointer()}
	if k := s.Kind(); k != nil {
		l.Type, l.Key = k.Name, k.Key
	}
	return l
}

// Wait is the wait of one party for one lock.
type Wait struct {
	Party     locks.Owner // a goroutine, or an explicit owner
	Goroutine locks.Owner // in which Party waits; Party itself unless that is an explicit owner
	Lock      Lock        // that Party waits for
	Shared    bool        // Party asked to share the lock, as a reader
	Limited   bool        // a context or a time limit can end the wait

	// For is the party that has to let go first, the next one of the cycle. It holds the lock or,
	// if Behind, is ahead in the lock's queue, as a writer that readers must not overtake.
	For    locks.Owner
	Behind bool

	Stack string // the current stack of Goroutine, as in a stack trace; "" if it has moved on meanwhile
	Taken string // where For took the lock; "" if that was not recorded, or if Behind
}

// Cycle is a cycle of waits: each one's For is the Party of the next, the last one's that of
// the first. It starts with the least Party, and is never empty. A snapshot: it does not
// change when the waits end.
type Cycle []Wait

// Certain reports whether nothing inside the cycle can open it: no wait has a limit, and no lock of it
// is held by an explicit owner, which may have another goroutine.
func (c Cycle) Certain() bool {
	for _, w := range c {
		if w.Limited || !w.Behind && w.For < 0 {
			return false
		}
	}
	return true
}

// String describes the cycle for a person, in several lines.
func (c Cycle) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock of %d", len(c))
	if !c.Certain() {
		b.WriteString(", unless it opens as noted")
	}
	b.WriteString(":\n")
	for _, w := range c {
		b.WriteString(w.Party.String())
		if w.Goroutine != w.Party {
			fmt.Fprintf(&b, " (in %s)", w.Goroutine)
		}
		mode := ""
		if w.Shared {
			mode = "to share "
		}
		fmt.Fprintf(&b, " waits %sfor %s, ", mode, w.Lock)
		if w.Behind {
			fmt.Fprintf(&b, "behind %s in its queue", w.For)
		} else {
			fmt.Fprintf(&b, "held by %s", w.For)
		}
		b.WriteString("\n")
		if w.Limited {
			b.WriteString("  note: a context or a time limit can end this wait\n")
		}
		if w.For < 0 && !w.Behind {
			fmt.Fprintf(&b, "  note: another goroutine may act for %s, and release\n", w.For)
		}
		if w.Taken != "" {
			fmt.Fprintf(&b, "  %s took it at\n%s", w.For, indent(w.Taken))
		}
		if w.Stack != "" {
			fmt.Fprintf(&b, "  %s is at\n%s", w.Goroutine, indent(w.Stack))
		}
	}
	return b.String()
}

func indent(stack string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(stack, "\n"), "\n", "\n    ") + "\n"
}

// Find returns the cycles among those who wait, or nil. Each of them stood at one moment during
// the call, though a wait with a limit may have ended since, and each that stood when the call began
// and still does is found. Where shared holds make many cycles of the same waits, there is at
// least one for each wait and each holder that is part of any. What an explicit
// owner holds is known less exactly if several goroutines act for it at that moment.
//
// If there is a cycle, Find stops the world to take the stacks of all goroutines. If not, it costs
// a look at each lock that was ever waited for and is still in memory.
func Find() []Cycle {
	found := syncq.Cycles()
	if len(found) == 0 {
		return nil
	}
	stacks := goroutines()
	cycles := make([]Cycle, len(found))
	for i, links := range found {
		c := make(Cycle, len(links))
		for k, l := range links {
			c[k] = newWait(l.Wait, links[(k+1)%len(links)].Who, stacks)
			c[k].Behind = l.Behind
			if !l.Behind {
				c[k].Taken = format(l.Lock.TakenAt(int64(c[k].For)))
			}
		}
		cycles[i] = c
	}
	return cycles
}

func newWait(w syncq.Wait, next int64, stacks map[int64]string) Wait {
	return Wait{
		Party: locks.Owner(w.Who), Goroutine: locks.Owner(w.Goroutine),
		Lock: describe(w.Lock), Shared: w.Shared, Limited: w.Limited,
		For: locks.Owner(next), Stack: stacks[w.Goroutine],
	}
}

// Orphan is a lock that somebody waits for and whose holder is no more.
type Orphan struct {
	Lock  Lock
	Owner locks.Owner // the goroutine that exited without releasing
	Taken string      // where it took the lock; "" if that was not recorded

	// Waits are those that Owner keeps out, longest first. Their For is Owner.
	Waits []Wait
}

// String describes the orphan for a person, in several lines.
func (o Orphan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "orphan: %s is held by %s, which has exited\n", o.Lock, o.Owner)
	if o.Taken != "" {
		fmt.Fprintf(&b, "  %s took it at\n%s", o.Owner, indent(o.Taken))
	}
	for _, w := range o.Waits {
		fmt.Fprintf(&b, "  %s waits for it", w.Goroutine)
		if w.Stack != "" {
			fmt.Fprintf(&b, " at\n%s", indent(w.Stack))
		} else {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Orphans returns the locks that somebody waits for while a goroutine that holds them has exited,
// or nil. Nobody is left to release, so these waits end by
// their limits or never. An explicit owner is no goroutine, and never exits.
//
// If anybody waits for a lock, Orphans stops the world to list all goroutines.
func Orphans() []Orphan {
	// A goroutine that holds at the first look existed then. If it is not in the list, which
	// is made afterwards, it has exited, as identities are not used again. If it holds
	// at the second look, which is made after that, it held when it exited.
	first := syncq.Waiting()
	if len(first) == 0 {
		return nil
	}
	suspects := make(map[*syncq.Sync][]int64)
	for _, w := range first {
		if _, ok := suspects[w.Lock]; !ok {
			suspects[w.Lock] = w.Lock.Holders()
		}
	}
	stacks := goroutines()
	var orphans []Orphan
	byHolder := make(map[held]int)
	for _, w := range syncq.Waiting() {
		for _, h := range w.Holders() {
			if _, lives := stacks[h]; lives || h <= 0 || !slices.Contains(suspects[w.Lock], h) {
				continue
			}
			i, ok := byHolder[held{w.Lock, h}]
			if !ok {
				i = len(orphans)
				byHolder[held{w.Lock, h}] = i
				orphans = append(orphans, Orphan{Lock: describe(w.Lock), Owner: locks.Owner(h), Taken: format(w.Lock.TakenAt(h))})
			}
			orphans[i].Waits = append(orphans[i].Waits, newWait(w, h, stacks))
		}
	}
	return orphans
}

type held struct {
	lock   *syncq.Sync
	holder int64
}

// goroutines returns the stacks of all goroutines by their identities.
func goroutines() map[int64]string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := make(map[int64]string)
	for _, stack := range strings.Split(string(buf), "\n\n") {
		var id int64
		header, frames, _ := strings.Cut(stack, "\n")
		if _, err := fmt.Sscanf(header, "goroutine %d ", &id); err == nil {
			stacks[id] = strings.TrimSuffix(frames, "\n") + "\n"
		}
	}
	return stacks
}

// internals are the packages whose frames on top of a stack say how a lock works, and not
// who took it.
var internals = []string{
	"github.com/jucgo/locks/internal/",
	"github.com/jucgo/locks/reentrant.",
	"github.com/jucgo/locks/named.",
	"github.com/jucgo/locks/condition.",
	"github.com/jucgo/locks/rwlock.",
}

// format returns a recorded stack in the form of a stack trace, from the caller of the lock on.
func format(stack []uintptr) string {
	if len(stack) == 0 {
		return ""
	}
	var b strings.Builder
	frames := runtime.CallersFrames(stack)
	for top := true; ; {
		f, more := frames.Next()
		if top = top && internal(f.Function); !top && f.Function != "" {
			fmt.Fprintf(&b, "%s()\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

func internal(function string) bool {
	for _, prefix := range internals {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
