// Package transfers moves money between accounts, once with a deadlock and once without. Its tests
// find the deadlock with package deadlock:
//
//	go test -v ./examples/stores/shop/transfers
package transfers

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/reentrant"
)

// An Account is a balance and its lock. It must not be copied.
type Account struct {
	mu      reentrant.Mutex
	balance int
}

// Naive locks the accounts in the order of the transfer. Two transfers in opposite directions wait
// for each other.
func Naive(ctx context.Context, from, to *Account, amount int) error {
	return locks.Do(ctx, &from.mu, func(ctx context.Context) error {
		return locks.Do(ctx, &to.mu, func(context.Context) error {
			move(from, to, amount)
			return nil
		})
	})
}

// Ordered lets locks.Multi acquire both locks in one order, whatever the direction is.
func Ordered(ctx context.Context, from, to *Account, amount int) error {
	return locks.Do(ctx, locks.Multi(&from.mu, &to.mu), func(context.Context) error {
		move(from, to, amount)
		return nil
	})
}

func move(from, to *Account, amount int) {
	from.balance -= amount
	to.balance += amount
}
