package deadlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
)

func ExampleCheck() {
	testTransfers := func(t *testing.T) { // in a file of your tests: func TestTransfers
		deadlock.Check(t)
		// ... the test
	}
	_ = testTransfers
}

// A report is a TB of another test framework.
type report struct {
	end      []func()
	failures []string
}

func (r *report) Helper()          {}
func (r *report) Cleanup(f func()) { r.end = append(r.end, f) }
func (r *report) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func ExampleTB() {
	r := new(report)
	var t deadlock.TB = r
	deadlock.Check(t)
	// ... the test, which leaves neither a cycle nor an orphan
	for _, check := range r.end {
		check()
	}
	fmt.Println(len(r.failures), "failures")
	// Output: 0 failures
}

// A goroutine that exits without its Unlock leaves an orphan.
func ExampleOrphan() {
	var mu reentrant.Mutex
	var holder sync.WaitGroup
	holder.Go(mu.Lock)
	holder.Wait()

	ctx, stop := context.WithCancel(context.Background())
	var waiter sync.WaitGroup
	waiter.Go(func() { _ = mu.LockContext(ctx) })
	var orphans []deadlock.Orphan
	for len(orphans) == 0 { // the holder's goroutine exits a moment after its last statement
		time.Sleep(time.Millisecond)
		orphans = deadlock.Orphans()
	}
	fmt.Printf("%s has %d waiter.\n", orphans[0].Lock.Type, len(orphans[0].Waits))
	fmt.Println(strings.HasPrefix(orphans[0].String(), "orphan: reentrant.Mutex"))
	stop()
	waiter.Wait()
	// Output:
	// reentrant.Mutex has 1 waiter.
	// true
}

// Two goroutines acquire two locks in opposite orders. The report can have any form.
func ExampleWait() {
	describe := func(w deadlock.Wait) string {
		var lock deadlock.Lock = w.Lock
		return fmt.Sprintf("%v can end by its context: %v.", lock, w.Limited)
	}

	ctx, leave := context.WithCancel(context.Background())
	var accounts keyed.Mutexes[string]
	var both, transfers sync.WaitGroup
	both.Add(2)
	for _, pair := range [][2]string{{"ada", "grace"}, {"grace", "ada"}} {
		from, to := accounts.Of(pair[0]), accounts.Of(pair[1])
		transfers.Go(func() {
			from.Lock()
			defer from.Unlock()
			both.Done()
			both.Wait()
			_ = locks.Do(ctx, to, func(context.Context) error { return nil })
		})
	}
	var cycles []deadlock.Cycle
	for len(cycles) == 0 {
		time.Sleep(time.Millisecond)
		cycles = deadlock.Find()
	}
	for _, wait := range cycles[0] {
		fmt.Println(describe(wait))
	}
	leave()
	transfers.Wait()
	// Unordered output:
	// keyed.Mutex("ada") can end by its context: true.
	// keyed.Mutex("grace") can end by its context: true.
}
