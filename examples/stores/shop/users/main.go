// Command users charges the wallets of many users at the same time. Each user has a lock, which
// exists only while it is in use. Charges of different users do not wait for each other.
//
//	go run ./examples/stores/shop/users
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
)

var errNoMoney = errors.New("not enough money")

type userID int

// Wallets has the balance of each user. The map stands for a database: single reads and writes are
// safe, and a charge is one of each.
type Wallets struct {
	users    keyed.Mutexes[userID]
	balances sync.Map // of int by userID
}

// Charge takes amount from the wallet of user. It waits until ctx ends if the same user is being
// charged.
func (w *Wallets) Charge(ctx context.Context, user userID, amount int) error {
	return locks.Do(ctx, w.users.Of(user), func(context.Context) error {
		value, _ := w.balances.Load(user)
		balance, _ := value.(int)
		if balance < amount {
			return errNoMoney
		}
		time.Sleep(time.Millisecond) // the database
		w.balances.Store(user, balance-amount)
		return nil
	})
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var w Wallets
	var charges sync.WaitGroup
	var paid, refused atomic.Int32
	for user := range userID(100) {
		w.balances.Store(user, 30)
		for range 5 { // five charges of ten at the same time
			charges.Go(func() {
				switch err := w.Charge(ctx, user, 10); {
				case err == nil:
					paid.Add(1)
				case errors.Is(err, errNoMoney):
					refused.Add(1)
				}
			})
		}
	}
	charges.Wait()
	fmt.Fprintf(out, "%d charges paid, %d refused, %d locks left\n", paid.Load(), refused.Load(), w.users.Len())
	return ctx.Err()
}
