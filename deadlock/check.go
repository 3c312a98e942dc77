package deadlock

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ownerless"
)

// TB is the part of [testing.TB] that [Check] needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Check fails a test that ends with a new cycle or orphan, with the report of each. Call it at
// the start of the test:
//
//	func TestTransfers(t *testing.T) {
//		deadlock.Check(t)
//		...
//	}
//
// Check looks when the test and the clean-ups registered after Check have ended. The failure
// message has the results of [Find] and [Orphans], including the places where the locks were
// acquired if [Record] was on. Cycles and orphans from before the call of Check are not reported:
// an earlier test left them.
//
// A test that passes had no new cycle and no new orphan when Check looked. Another schedule of the
// same test may have one: package lockstest/explore tries many. Check does not look at waits for
// channels, for locks without owners (fair, spin, semaphore, synchronizer, rwlock.StampedLock,
// sync), or for locks that other processes hold. If the program has such locks of this module,
// Check names them once, in the log of the first test that ends. It names a StampedLock after the
// first wait for one.
//
// Check sees the waits of the whole process. If tests run in parallel, each test that ends while
// there is a new cycle fails. A test that is part of a cycle itself never ends: use [Refuse]
// there.
func Check(t TB) {
	t.Helper()
	before := map[wait]bool{}
	for _, c := range Find() {
		for _, w := range c {
			before[waitOf(w)] = true
		}
	}
	for _, o := range Orphans() {
		before[orphanOf(o)] = true
	}
	t.Cleanup(func() {
		t.Helper()
		unseen(t)
		for _, c := range Find() {
			if slices.ContainsFunc(c, func(w Wait) bool { return !before[waitOf(w)] }) {
				t.Errorf("%v", c)
			}
		}
		for _, o := range Orphans() {
			if !before[orphanOf(o)] {
				t.Errorf("%v", o)
			}
		}
	})
}

// told is how many names of unseen locks a test has logged.
var told atomic.Int32

// unseen logs which locks of the program Check does not see, once.
func unseen(t TB) {
	t.Helper()
	log, ok := t.(interface {
		Logf(format string, args ...any)
	})
	names := ownerless.Names()
	if n := int32(len(names)); !ok || told.Swap(n) >= n {
		return
	}
	log.Logf("deadlock.Check does not see waits for locks without owners. This program has such locks: %s. "+
		"lockstest/explore finds their deadlocks, and so does Check with a reentrant.Mutex or an rwlock.RWMutex "+
		"in their place", strings.Join(names, ", "))
}

// wait identifies a wait of a cycle, or an orphan. The waits keep the lock alive, and with it the
// address.
type wait struct {
	lock                 uintptr
	party, goroutine, on locks.Owner
}

func waitOf(w Wait) wait     { return wait{w.Lock.Address, w.Party, w.Goroutine, w.For} }
func orphanOf(o Orphan) wait { return wait{lock: o.Lock.Address, on: o.Owner} }
