package keyed_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
)

func ExampleNew() {
	accounts := keyed.New[string](locks.FIFO)

	err := locks.Do(context.Background(), accounts.Of("alice"), func(context.Context) error {
		fmt.Println("in use:", accounts.Len())
		return errors.New("out of money")
	})
	fmt.Println(err)
	fmt.Println("in use:", accounts.Len())
	// Output:
	// in use: 1
	// out of money
	// in use: 0
}

func ExampleMutexes_Of() {
	type seat struct{ row, number int }
	var seats keyed.Mutexes[seat]

	l := seats.Of(seat{12, 3})
	l.Lock()
	defer l.Unlock()
	fmt.Println(seats.Of(seat{12, 3}).IsHeld(), seats.Of(seat{12, 4}).IsHeld())
	// Output: true false
}
