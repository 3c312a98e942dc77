package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
)

// work is the work of the program under locks. Nothing in this file knows where they are.
type work struct {
	locks   locks.Provider
	ledger  ledger
	tickets int
	workers int
	process string // what this process is called, "" if it is the only one
	out     io.Writer
}

func (w *work) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

// together runs f in n goroutines, numbered from 1, and waits for all of them. The first error ends
// ctx for the others.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if errs[i] = f(ctx, i+1); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil { // the first error; the others may follow from it
		return err
	}
	return nil
}

// sell makes all workers sell tickets until none is left. A worker reads the last number from the
// ledger, and writes the next number. That is correct only if no other worker, here or in another
// process, does the same in between.
func (w *work) sell(ctx context.Context) error {
	lock := w.locks.Locker("tickets")
	return together(ctx, w.workers, func(ctx context.Context, i int) error {
		who := fmt.Sprint("worker ", i)
		if w.process != "" {
			who = w.process + ", " + who
		}
		for {
			soldOut := false
			err := locks.Do(ctx, lock, func(ctx context.Context) error {
				last, err := w.ledger.last()
				if err != nil {
					return err
				}
				if soldOut = last.number >= w.tickets; soldOut {
					return nil
				}
				return w.sellNext(ctx, lock, who, last.number+1)
			})
			if err != nil || soldOut {
				return err
			}
			pause(ctx, 20*time.Millisecond) // until the next customer comes
		}
	})
}

// sellNext sells one ticket. It acquires the lock itself, so that its caller may hold the lock or
// not. Re-entry asks no store.
func (w *work) sellNext(ctx context.Context, lock locks.TryLocker, who string, number int) error {
	return locks.Do(ctx, lock, func(ctx context.Context) error {
		pause(ctx, 2*time.Millisecond) // without the lock, another worker would do harm now
		token, err := tokenOf(ctx, lock)
		if err != nil {
			return err
		}
		// ctx ends when the lock is lost. The ledger checks the token too, because this process
		// may be paused on this very line.
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.ledger.add(sale{number, token, who}); err != nil {
			return err
		}
		if token == 0 {
			w.say("%s sold ticket %d", who, number)
		} else {
			w.say("%s sold ticket %d, fencing token %d", who, number, token)
		}
		return nil
	})
}

// tokenOf returns the fencing token of ctx's owner, or 0 for a lock that has none, such as that
// of one process. Owners of one process that hand the lock off locally have the same token.
func tokenOf(ctx context.Context, lock locks.TryLocker) (uint64, error) {
	leased, ok := lock.(locks.Leased)
	if !ok {
		return 0, nil
	}
	hold, err := leased.Hold(ctx)
	if err != nil {
		return 0, err
	}
	return hold.Token(), nil
}

// check returns an error unless every ticket was sold once. It prints how often the lock changed
// hands.
func (w *work) check() error {
	sales, err := w.ledger.check(w.tickets)
	if err != nil {
		return err
	}
	turns := 0
	for i := 1; i < len(sales); i++ {
		if process(sales[i]) != process(sales[i-1]) {
			turns++
		}
	}
	w.say("%d tickets sold, none twice, none left out; the lock went from one %s to another %d times",
		len(sales), strings.Fields(process(sales[0]))[0], turns)
	return nil
}

// process returns the process that made a sale, or the worker if there is only one.
func process(s sale) string {
	name, _, _ := strings.Cut(s.who, ",")
	return name
}

// try tries to acquire a lock that another owner holds.
func (w *work) try(ctx context.Context) error {
	lock := w.locks.Locker("tickets")
	return locks.Do(ctx, lock, func(ctx context.Context) error {
		somebodyElse := locks.WithOwner(ctx, locks.NewOwner())
		ok, err := lock.TryLockContext(somebodyElse)
		if err != nil {
			return err
		}
		if ok {
			return errors.New("two have the lock at once")
		}
		w.say("TryLockContext of a lock that somebody else has: false, without waiting")
		return nil
	})
}

// transfer moves money between two accounts, in both directions at once. Each transfer needs
// both locks.
func (w *work) transfer(ctx context.Context) error {
	const times = 5
	left, right := 100, 100
	move := func(from, to string, a, b *int) error {
		both := locks.Multi(w.locks.Locker(from), w.locks.Locker(to))
		for range times {
			err := locks.Do(ctx, both, func(context.Context) error {
				*a, *b = *a-1, *b+1
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	err := together(ctx, 2, func(_ context.Context, i int) error {
		if i == 1 {
			return move("left", "right", &left, &right)
		}
		return move("right", "left", &right, &left)
	})
	if err != nil {
		return err
	}
	if left != 100 || right != 100 {
		return fmt.Errorf("there are %d and %d in the accounts, and should be 100 each", left, right)
	}
	w.say("Multi: two workers took the locks left and right together, %d times each, in opposite orders; "+
		"no deadlock", times)
	return nil
}

// lose holds a lock while its store is closed with closeStore. An error leaves the lock held, until
// the store ends the hold.
func (w *work) lose(ctx context.Context, closeStore func(context.Context) error) error {
	lock, ok := w.locks.Locker("tickets").(locks.Leased)
	if !ok {
		w.say("The lock cannot be lost: it is in the memory of this process, and ends with it")
		return closeStore(ctx)
	}
	if err := lock.LockContext(ctx); err != nil {
		return err
	}
	hold, err := lock.Hold(ctx)
	if err != nil {
		return err
	}
	valid := "as long as the process lives"
	if end, ok := hold.Deadline(); ok {
		valid = fmt.Sprintf("for %.0f s if the store is not heard of any more", time.Until(end).Seconds())
	}
	w.say("A hold with the fencing token %d is valid %s", hold.Token(), valid)
	if err := closeStore(ctx); err != nil {
		return err
	}
	select {
	case <-hold.Lost():
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := hold.Err(); !errors.Is(err, locks.ErrLost) {
		return fmt.Errorf("the hold is lost, but says: %v", err)
	}
	if err := lock.UnlockContext(ctx); !errors.Is(err, locks.ErrLost) {
		return fmt.Errorf("the hold is lost, but its unlock says: %v", err)
	}
	w.say("The store was closed under its holder, who was told: Lost is closed, Err and UnlockContext " +
		"match locks.ErrLost")
	return nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
