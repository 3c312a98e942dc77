package transfers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A finding is a testing.TB that keeps its failures, because this test wants one. Your tests call
// deadlock.Check(t), as the last test of this file does.
type finding struct {
	end      []func()
	failures []string
}

func (f *finding) Helper()             {}
func (f *finding) Cleanup(step func()) { f.end = append(f.end, step) }
func (f *finding) Errorf(format string, args ...any) {
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// crossed makes two transfers in opposite directions, each with its first lock, and returns the
// error of the second one.
func crossed(ctx context.Context, transfers *sync.WaitGroup) error {
	var a, b Account
	b.mu.Lock()
	defer b.mu.Unlock()
	transfers.Go(func() { _ = Naive(ctx, &a, &b, 10) })
	for b.mu.QueueLength() == 0 { // the first one holds a, and waits for b
		time.Sleep(time.Millisecond)
	}
	return Naive(ctx, &b, &a, 10) // it enters b again, and waits for a
}

func TestCheckFindsTheDeadlockOfNaiveTransfers(t *testing.T) {
	defer deadlock.Record(deadlock.Record(true)) // the report then has the lines that locked
	ctx, stop := context.WithCancel(t.Context())
	var f finding
	deadlock.Check(&f)

	var transfers sync.WaitGroup
	transfers.Go(func() { _ = crossed(ctx, &transfers) })
	for len(deadlock.Find()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, step := range f.end {
		step()
	}
	stop()
	transfers.Wait()

	require.Len(t, f.failures, 1)
	require.Contains(t, f.failures[0], "deadlock of 2")
	require.Contains(t, f.failures[0], "transfers.go")
	t.Log(f.failures[0])
}

func TestRefuseEndsTheDeadlockWithAnError(t *testing.T) {
	defer deadlock.Refuse(deadlock.Refuse(true))
	var transfers sync.WaitGroup
	err := crossed(t.Context(), &transfers)
	transfers.Wait()
	require.ErrorIs(t, err, locks.ErrDeadlock)
}

func TestOrderedTransfersHaveNoDeadlock(t *testing.T) {
	deadlock.Check(t)
	var a, b Account
	var transfers sync.WaitGroup
	for range 1000 {
		transfers.Go(func() { _ = Ordered(t.Context(), &a, &b, 10) })
		transfers.Go(func() { _ = Ordered(t.Context(), &b, &a, 10) })
	}
	transfers.Wait()
	require.Zero(t, a.balance)
	require.Zero(t, b.balance)
}
