package deadlock

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/stacks"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/waits"
)

// Refuse switches on or off the refusal of acquisitions that would close a cycle. It returns
// whether the refusal was on. It may be called at any time.
//
// While it is on, the acquisition that would close a cycle fails at once. LockContext returns an
// error that matches [locks.ErrDeadlock], Lock panics with such an error, and TryLockFor returns
// false. An acquisition with a time limit, or with a context that can end, is refused as well,
// since it could only end by that. The same is true if another wait of the cycle has a limit.
// TryLock and TryLockContext never wait, and are never refused.
//
// The error does not say which locks the cycle has. To see them, leave Refuse off, and call [Find]
// while the goroutines hang.
//
// The refused owner keeps all its holds, and is in no queue. It should release its holds and
// start again.
//
// No acquisition is refused without a cycle. Refuse does not act on three kinds of cycle, which
// [Find] returns:
//
//   - An explicit owner holds one of the locks, and might release it in another goroutine.
//   - A condition's waiter closes the cycle when it comes back to its lock: a wait always
//     returns with the lock.
//   - The cycle, or one of its acquisitions, began before Refuse was switched on.
//
// While it is on, waiters enqueue one at a time. Each waiter looks at the locks and holders that it
// would wait for, which takes longer with longer queues. Acquisitions without a wait cost the same.
func Refuse(on bool) (was bool) { return waits.Refuse(on) }

// Record switches on or off the recording of where locks are acquired. It returns whether the
// recording was on. It may be called at any time. Earlier acquisitions are unknown, and
// switching off forgets all records.
//
// While it is on, every acquisition except a re-entry takes a stack trace, about a microsecond.
// While it is off, it costs nothing.
func Record(on bool) (was bool) { return waits.SetRecording(on) }

// Lock describes a lock. It does not keep the lock alive.
type Lock struct {
	Type    string  // such as "reentrant.Mutex"
	Key     any     // its key in a set of package keyed or named, else nil
	Address uintptr // identifies the lock while it exists
}

// String returns the type with the key or, without a key, with the address. String calls no method
// of the key, and reads no memory that the key points to: of a pointer it has the type and the
// address.
func (l Lock) String() string {
	if l.Key == nil {
		return fmt.Sprintf("%s(%#x)", l.Type, l.Address)
	}
	return l.Type + "(" + keytext.Of(l.Key) + ")"
}

func describe(s *syncq.Sync) Lock {
	l := Lock{Type: "lock", Address: reflect.ValueOf(s).Pointer()}
	if k := waits.Kind(s); k != nil {
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

	// For is the owner that Party waits for, the next party of the cycle. It holds the lock or, if
	// Behind, is ahead in the lock's queue, as a writer that readers must not overtake.
	For    locks.Owner
	Behind bool

	Stack string // the current stack of Goroutine, as in a stack trace; "" if it has moved on meanwhile
	Taken string // where For took the lock; "" if that was not recorded, or if Behind
}

// Cycle is a cycle of waits. For of each wait is the Party of the next wait, and For of the last
// wait is the Party of the first. A Cycle starts with the least Party, and is never empty. It is a
// snapshot: it does not change when the waits end.
type Cycle []Wait

// Certain reports whether nothing inside the cycle can end it. No wait of the cycle has a limit,
// and no explicit owner, which may act in another goroutine, holds one of its locks.
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
			fmt.Fprintf(&b, "  %s is at\n%s", w.Goroutine, indent(stacks.Program(w.Stack)))
		}
	}
	return b.String()
}

func indent(stack string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(stack, "\n"), "\n", "\n    ") + "\n"
}

// Find returns the cycles among the waiters, or nil. Each cycle existed at one moment during the
// call. A wait with a limit may have ended since. Find returns each cycle that exists from the
// start of the call to its end. If shared holds make many cycles of the same waits, it returns at
// least one for each wait and for each holder that is part of any. The holds of an explicit owner
// are less exact while several goroutines act for that owner.
//
// Nil does not mean that nothing hangs. Find does not look at waits for channels, for locks without
// owners, or for locks that other processes hold.
//
// If there is a cycle, Find stops the world to take the stacks of all goroutines. If not, it
// looks once at each lock that goroutines have ever waited for and that is still in memory.
func Find() []Cycle {
	found := waits.Cycles()
	if len(found) == 0 {
		return nil
	}
	all, _ := stacks.All()
	cycles := make([]Cycle, len(found))
	for i, links := range found {
		c := make(Cycle, len(links))
		for k, l := range links {
			c[k] = newWait(l.Wait, links[(k+1)%len(links)].Who, all)
			c[k].Behind = l.Behind
			if !l.Behind {
				c[k].Taken = stacks.Format(waits.TakenAt(l.Lock, int64(c[k].For)))
			}
		}
		cycles[i] = c
	}
	return cycles
}

func newWait(w waits.Wait, next int64, all map[int64]stacks.Goroutine) Wait {
	return Wait{
		Party: locks.Owner(w.Who), Goroutine: locks.Owner(w.Goroutine),
		Lock: describe(w.Lock), Shared: w.Shared, Limited: w.Limited,
		For: locks.Owner(next), Stack: all[w.Goroutine].Frames,
	}
}

// Orphan is a lock with waiters whose holder, a goroutine, has exited.
type Orphan struct {
	Lock  Lock
	Owner locks.Owner // the goroutine that exited without releasing
	Taken string      // where it took the lock; "" if that was not recorded

	// Waits are the waits that Owner keeps waiting, longest first. Their For is Owner.
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
			fmt.Fprintf(&b, " at\n%s", indent(stacks.Program(w.Stack)))
		} else {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Orphans returns the locks that have waiters and whose holder, a goroutine, has exited, or nil. No
// goroutine is left to release them: these waits end by their limits or never. An explicit owner is
// not a goroutine, and never exits. Nil says nothing of locks without waiters or without owners.
//
// If any goroutine waits for a lock, Orphans stops the world to list all goroutines.
func Orphans() []Orphan {
	waiting := waits.Waiting()
	if len(waiting) == 0 {
		return nil
	}
	suspects := waits.SuspectsOf(waiting)
	all, _ := stacks.All()
	lives := func(goroutine int64) bool { _, ok := all[goroutine]; return ok }
	var orphans []Orphan
	for _, found := range waits.Orphans(suspects, lives) {
		o := Orphan{
			Lock: describe(found.Lock), Owner: locks.Owner(found.Holder),
			Taken: stacks.Format(waits.TakenAt(found.Lock, found.Holder)),
		}
		for _, w := range found.Waits {
			o.Waits = append(o.Waits, newWait(w, found.Holder, all))
		}
		orphans = append(orphans, o)
	}
	return orphans
}
