package fileopen_test

import (
	"context"
	"fmt"
	"log"
	"os"

	_ "github.com/jucgo/locks/distributed/filelock/fileopen"
	"github.com/jucgo/locks/distributed/open"
)

func Example() {
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := open.URL(context.Background(), "file:"+dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close(context.Background())

	for _, name := range []string{"report:nightly", "report:weekly", "orders"} {
		store.Locker(name).TryLockContext(context.Background())
	}
	names, err := store.Names(context.Background(), "report:*")
	fmt.Println(names, err)
	// Output:
	// [report:nightly report:weekly] <nil>
}
