package comingfrom

import (
	"context"
	"testing"

	godeadlock "github.com/sasha-s/go-deadlock"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/reentrant"
)

type theirAccount struct {
	mu      godeadlock.Mutex // exits the process at a wrong order, or after 30 s
	balance int
}

func theirTransfer(from, to *theirAccount, amount int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

type account struct {
	reentrant.Mutex
	balance int
}

func transfer(ctx context.Context, from, to *account, amount int) error {
	return locks.Do(ctx, &from.Mutex, func(ctx context.Context) error {
		return locks.Do(ctx, &to.Mutex, func(context.Context) error {
			from.balance -= amount
			to.balance += amount
			return nil
		})
	})
}

// A test fails if it ends with a cycle of waits, or with a lock of a goroutine that has exited.
func TestTransfer(t *testing.T) {
	deadlock.Check(t)
	var a, b account
	require.NoError(t, transfer(t.Context(), &a, &b, 1))
}

// In a program, an acquisition that would close a cycle fails, and its caller can begin again.
func TestRefuseEndsACycle(t *testing.T) {
	deadlock.Refuse(true)
	defer deadlock.Refuse(false)
	var a, b account
	a.Lock()
	hasB, done := make(chan bool), make(chan error)
	go func() {
		b.Lock()
		close(hasB)
		err := a.LockContext(t.Context()) // waits for the test
		if err == nil {
			a.Unlock()
		}
		b.Unlock()
		done <- err
	}()
	<-hasB
	err := b.LockContext(t.Context()) // one of the two closes the cycle
	if err == nil {
		b.Unlock()
	}
	a.Unlock()
	other := <-done
	require.True(t, (err == nil) != (other == nil), "%v, %v", err, other)
	if err == nil {
		err = other
	}
	require.ErrorIs(t, err, locks.ErrDeadlock)

	var c, d theirAccount
	theirTransfer(&c, &d, 1)
	require.Equal(t, -1, c.balance)
}
