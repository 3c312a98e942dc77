package open_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
)

func ExampleURL() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // for the first answer
	defer cancel()
	store, err := open.URL(ctx, "mem:") // or os.Getenv("LOCK_STORE")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close(context.Background())

	err = locks.Do(context.Background(), store.Locker("orders"), func(context.Context) error {
		fmt.Println("locked in", store)
		return nil
	})
	fmt.Println(err)
	// Output:
	// locked in mem:
	// <nil>
}

// A command can tell a wrong URL from a store that is down.
func ExampleURL_errors() {
	_, err := open.URL(context.Background(), "redis://:secret@localhost?ttl=fast")
	switch {
	case errors.Is(err, open.ErrURL):
		fmt.Println("exit code 2")
	case errors.Is(err, open.ErrUnreachable):
		fmt.Println("exit code 69")
	}
	// Output: exit code 2
}

// An option wins over the parameter of the URL, such as for a flag of the program.
func ExampleOption() {
	flags := []open.Option{open.WithTTL(time.Minute), open.WithLabel("nightly")}
	store, err := open.URL(context.Background(), "etcd://etcd-1,etcd-2,etcd-3?ttl=10s", flags...)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close(context.Background())
}

// This program imports no store.
func ExampleSchemes() {
	fmt.Println(open.Schemes())
	// Output: [mem]
}
