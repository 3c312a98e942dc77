// Command local is the program that the README runs first: five buyers, three tickets, one fair
// lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
)

var errSoldOut = errors.New("sold out")

func main() {
	var mu fair.Mutex // the zero value is unlocked; waiters get it in order of arrival
	tickets := 3

	var buyers sync.WaitGroup
	for range 5 {
		buyers.Go(func() {
			// A buyer waits one second at most.
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := locks.Do(ctx, &mu, func(context.Context) error {
				if tickets == 0 {
					return errSoldOut
				}
				tickets--
				return nil
			})
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				fmt.Println("gave up waiting")
			case err != nil:
				fmt.Println(err)
			default:
				fmt.Println("bought a ticket")
			}
		})
	}
	buyers.Wait()
}
