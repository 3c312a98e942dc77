package deadlock

// TB is the part of [testing.TB] that [Check] needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Check fails a test that ends with a cycle or an orphan, with the report of each. Call it at
// the start of the test:
//
//	func TestTransfers(t *testing.T) {
//		deadlock.Check(t)
//		...
//	}
//
// Check looks when the test and the clean-ups registered after Check have ended. The failure
// message has what [Find] and [Orphans] return, including the places where the locks were
// acquired if [Record] was on.
//
// Check sees the waits of the whole process. If tests run in parallel, each test that ends while
// there is a cycle fails. A test that is part of a cycle itself never ends: use [Refuse] there.
func Check(t TB) {
	t.Helper()
	t.Cleanup(func() {
		t.Helper()
		for _, c := range Find() {
			t.Errorf("%v", c)
		}
		for _, o := range Orphans() {
			t.Errorf("%v", o)
		}
	})
}
