package doublelock

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

type ledger struct {
	mu   fair.Mutex
	own  reentrant.Mutex
	load int
}

func (l *ledger) count(ctx context.Context) error {
	return locks.Do(ctx, &l.mu, func(context.Context) error {
		l.load++
		return nil
	})
}

func (l *ledger) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load++
}

func (l *ledger) again(ctx context.Context) error {
	return locks.Do(ctx, &l.mu, func(context.Context) error { // want `locks.Do holds l.mu while it calls a function in again, which acquires it again: it waits for itself`
		l.add()
		return nil
	})
}

func (l *ledger) tried(ctx context.Context) (bool, error) {
	return locks.TryDo(ctx, &l.mu, l.count) // want `locks.TryDo holds l.mu while it calls count, which acquires it again: it waits for itself`
}

func (l *ledger) under(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return locks.Do(ctx, &l.mu, func(context.Context) error { return nil }) // want `locks.Do calls LockContext of l.mu, which this function already holds: it waits for itself`
}

func (l *ledger) below(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count(ctx) // want `count calls locks.Do, which calls LockContext of l.mu, which this function already holds: it waits for itself`
}

// What follows is right.

func (l *ledger) after(ctx context.Context) error {
	l.add()
	err := l.count(ctx)
	l.add()
	return err
}

func (l *ledger) tries(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return locks.TryDo(ctx, &l.mu, func(context.Context) error { return nil })
}

func (l *ledger) others(ctx context.Context, o *ledger) error {
	return locks.Do(ctx, &o.mu, func(context.Context) error {
		l.add()
		return nil
	})
}

func (l *ledger) enters(ctx context.Context) error {
	return locks.Do(ctx, &l.own, func(context.Context) error {
		l.own.Lock()
		defer l.own.Unlock()
		return nil
	})
}

func (l *ledger) later(ctx context.Context) error {
	return locks.Do(ctx, &l.mu, func(context.Context) error {
		go l.add()
		return nil
	})
}
