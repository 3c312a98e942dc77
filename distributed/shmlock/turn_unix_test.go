//go:build unix

package shmlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/testbed"
)

// slow is a context of the program's own type, whose second Err after its end runs f. The first is
// called by package context.
type slow struct {
	context.Context
	calls atomic.Int32
	f     func()
}

func (c *slow) Err() error {
	err := c.Context.Err()
	if err != nil && c.calls.Add(1) == 2 {
		c.f()
	}
	return err
}

func TestAWaiterForTheWordAsksItsContextWithoutTheTurn(t *testing.T) {
	path := somewhere(t)
	here, there := open(t, path), open(t, path)
	require.NoError(t, there.LockContext(background))
	end, cancel := context.WithCancel(locks.WithOwner(background, locks.NewOwner()))
	defer cancel()
	next := make(chan error, 1)
	ctx := &slow{Context: end, f: func() {
		select {
		case err := <-next:
			next <- err
		case <-time.After(testbed.Hang):
			t.Error("the next waiter waits for a method of a context that has ended")
		}
	}}
	ended := make(chan error, 1)
	go func() { ended <- here.LockContext(ctx) }()
	require.Eventually(t, here.WaitsForWord, testbed.Hang, time.Millisecond)
	go func() {
		err := here.LockContext(background)
		if err == nil {
			err = here.UnlockContext(background)
		}
		next <- err
	}()
	require.Eventually(t, func() bool { return here.QueueLength() == 1 }, testbed.Hang, time.Millisecond)
	cancel()
	require.Eventually(t, func() bool { return ctx.calls.Load() > 0 }, testbed.Hang, time.Millisecond)
	require.NoError(t, there.UnlockContext(background))
	require.NoError(t, <-next)
	<-ended // the unlock may have met the end of ctx
}
