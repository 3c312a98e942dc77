package deadlock

import (
	"slices"

	"github.com/jucgo/locks"
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
// message has what [Find] and [Orphans] return, including the places where the locks were
// acquired if [Record] was on. What there was when Check was called is not reported: an earlier
// test left it.
//
// A test that passes had no new cycle and no new orphan when Check looked. Another schedule of the
// same test may have one: package lockstest/explore tries many. Check does not look at waits for
// channels, for locks without owners (fair, spin, sync), or for what other processes hold.
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

// wait identifies a wait of a cycle, or an orphan. The waits keep the lock alive, and with it the
// address.
type wait struct {
	lock                 uintptr
	party, goroutine, on locks.Owner
}

func waitOf(w Wait) wait     { return wait{w.Lock.Address, w.Party, w.Goroutine, w.For} }
func orphanOf(o Orphan) wait { return wait{lock: o.Lock.Address, on: o.Owner} }
