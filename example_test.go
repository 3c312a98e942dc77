package locks_test

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/reentrant"
)

// account is written against the interface, and does not know which lock it has.
type account struct {
	lock    locks.TryLocker
	balance int
}

func (a *account) withdraw(ctx context.Context, amount int) error {
	return locks.Do(ctx, a.lock, func(context.Context) error {
		if amount > a.balance {
			return errors.New("not enough money")
		}
		a.balance -= amount
		return nil
	})
}

// The lock behind a call site is chosen where it is made.
func ExampleTryLocker() {
	ctx := context.Background()
	for _, lock := range []locks.TryLocker{
		new(fair.Mutex),
		new(reentrant.Mutex),
		reentrant.New(locks.FIFO),
		new(named.Provider).Locker("account 7"),
	} {
		a := &account{lock: lock, balance: 100}
		err := a.withdraw(ctx, 70)
		fmt.Println(a.balance, err)
	}
	// Output:
	// 30 <nil>
	// 30 <nil>
	// 30 <nil>
	// 30 <nil>
}

func ExampleDo() {
	var mu reentrant.Mutex
	err := locks.Do(context.Background(), &mu, func(ctx context.Context) error {
		fmt.Println("held:", mu.IsHeld())
		return errors.New("no luck")
	})
	fmt.Println(err)
	fmt.Println("held:", mu.IsHeld())
	// Output:
	// held: true
	// no luck
	// held: false
}

func ExampleTryDo() {
	var m reentrant.Mutex
	ran, err := locks.TryDo(context.Background(), &m, func(context.Context) error {
		fmt.Println("the report is written")
		return nil
	})
	if err == nil && !ran {
		fmt.Println("another one writes it")
	}
	// Output: the report is written
}

// A provider of distributed/redislock gives the same with tokens.
func ExampleHoldFrom() {
	var p locks.Provider = new(named.Provider)
	_ = locks.Do(context.Background(), p.Locker("orders"), func(ctx context.Context) error {
		if hold, ok := locks.HoldFrom(ctx); ok {
			fmt.Println("write with token", hold.Token())
		} else {
			fmt.Println("the lock has no lease, and needs no token")
		}
		return nil
	})
	// Output: the lock has no lease, and needs no token
}

func ExampleGuarded() {
	balance := locks.NewGuarded(new(reentrant.Mutex), 100)
	err := balance.With(context.Background(), func(b *int) error {
		if *b < 120 {
			return errors.New("not enough")
		}
		*b -= 120
		return nil
	})
	fmt.Println(err)
	// Output: not enough
}

func ExampleMulti() {
	var from, to reentrant.Mutex
	// In whatever order the two are listed elsewhere, no deadlock follows.
	both := locks.Multi(&from, &to)
	_ = locks.Do(context.Background(), both, func(context.Context) error {
		fmt.Println(from.IsHeld(), to.IsHeld())
		return nil
	})
	// Output: true true
}

// An explicit owner holds the lock for a group of goroutines, each of which may enter it again.
func ExampleWithOwner() {
	var mu reentrant.Mutex
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	if err := mu.LockContext(ctx); err != nil {
		fmt.Println(err)
		return
	}

	g, ctx := errgroup.WithContext(ctx)
	parts := make([]int, 3)
	for i := range parts {
		g.Go(func() error {
			return locks.Do(ctx, &mu, func(context.Context) error {
				parts[i] = i * i
				return nil
			})
		})
	}
	fmt.Println(g.Wait(), parts)

	// ctx has ended with the group; the release goes through all the same.
	fmt.Println(mu.UnlockContext(ctx), mu.IsLocked())
	// Output:
	// <nil> [0 1 4]
	// <nil> false
}

func ExampleInspector() {
	ctx := context.Background()
	var m reentrant.Mutex
	m.Lock()
	defer m.Unlock()

	info, err := m.Inspect(ctx)
	fmt.Println(info.Held, info.Holders[0].Owner == locks.CurrentOwner(ctx), info.Waiting, err)
	// Output: true true 0 <nil>
}

// A timer that finds the value in use leaves the work to the next tick.
func ExampleGuarded_TryWith() {
	queue := locks.NewGuarded(new(reentrant.Mutex), []string{"a", "b"})
	ran, err := queue.TryWith(context.Background(), func(q *[]string) error {
		fmt.Println("flush", len(*q))
		*q = nil
		return nil
	})
	fmt.Println(ran, err)
	// Output:
	// flush 2
	// true <nil>
}
