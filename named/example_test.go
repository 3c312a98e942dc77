package named_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/named"
)

func ExampleNew() {
	accounts := named.New(locks.FIFO)

	err := locks.Do(context.Background(), accounts.Locker("alice"), func(context.Context) error {
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
