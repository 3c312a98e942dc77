package driver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/named"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "shop", Form: "shop://USER:PASSWORD@HOST:PORT/FLOOR", Port: "7000",
		Kinds: []string{"plain", "fair"},
		More:  append(driver.Leased(), "color"),
		Open:  openShop,
	})
}

// openShop opens a store that a URL with the scheme shop names.
func openShop(_ context.Context, o *driver.Opening) error {
	if o.Path == "" {
		return driver.Reason("the floor is missing. The form is %s", o.Scheme.Form)
	}
	color, err := o.OneOf("color", "green", "red")
	if err != nil {
		return err
	}
	fmt.Printf("%s connects to the %s store at %s, for %v\n", o.User, color, o.Hosts[0], o.TTL)
	o.OnClose(func(context.Context) error {
		fmt.Println("closed")
		return nil
	})
	policy := locks.NonFair
	if o.Kind() == "fair" {
		policy = locks.FIFO
	}
	o.Locker = named.New(policy).Locker
	return nil
}

// Package open calls Open. The test of a scheme may do so, too.
func Example() {
	ctx := context.Background()
	_, err := driver.Open(ctx, "shop://ada:secret@example.com?kind=fair", driver.Options{})
	fmt.Println(err)
	store, err := driver.Open(ctx, "shop://ada:secret@example.com/2?color=red", driver.Options{TTL: time.Minute})
	if err != nil {
		panic(err)
	}
	defer store.Close(ctx)
	fmt.Println("opened", store.About)
	// Output:
	// open: shop://example.com:7000: invalid URL: the floor is missing. The form is shop://USER:PASSWORD@HOST:PORT/FLOOR
	// ada connects to the red store at example.com:7000, for 1m0s
	// opened shop://example.com:7000/2
	// closed
}
