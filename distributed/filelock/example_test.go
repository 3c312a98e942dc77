package filelock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

// openExample returns the locks in a folder of its own. Yours is a folder that all processes know,
// such as /var/lock/app.
func openExample(opts ...filelock.Option) (client *filelock.Client, done func()) {
	dir, err := os.MkdirTemp("", "filelock")
	if err != nil {
		panic(err)
	}
	client, err = filelock.New(dir, opts...)
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close(context.Background())
		os.RemoveAll(dir)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Each name is a file. One process at a time holds it.
func ExampleClient() {
	dir, err := os.MkdirTemp("", "filelock")
	must(err)
	defer os.RemoveAll(dir)
	client, err := filelock.New(dir)
	must(err)
	ctx := context.Background()
	defer client.Close(ctx)

	err = locks.Do(ctx, client.Locker("orders"), func(context.Context) error {
		fmt.Println("one process works, with", filepath.Base(client.Path("orders")))
		return nil
	})
	fmt.Println(err)
	// Output:
	// one process works, with orders.lock
	// <nil>
}

// With tokens, a resource can refuse the writes of a holder whose file was deleted.
func ExampleMutex() {
	client, done := openExample(filelock.WithTokens())
	defer done()
	ctx := context.Background()
	var orders *filelock.Mutex = client.Mutex("orders")
	for range 2 {
		must(orders.LockContext(ctx))
		hold, err := orders.Hold(ctx)
		must(err)
		fmt.Println("token", hold.Token())
		must(orders.UnlockContext(ctx))
	}
	// Output:
	// token 1
	// token 2
}

// Readers of all processes share the file, and a writer has it alone.
func ExampleRWMutex() {
	client, done := openExample()
	defer done()
	ctx := context.Background()
	var catalogue *filelock.RWMutex = client.RWMutex("catalogue")
	must(catalogue.ReadLocker().LockContext(ctx))

	other := locks.WithOwner(ctx, locks.NewOwner())
	reads, err := catalogue.ReadLocker().TryLockContext(other)
	fmt.Println("another one reads:", reads, err)
	must(catalogue.ReadLocker().UnlockContext(other))
	writes, err := catalogue.WriteLocker().TryLockContext(other)
	fmt.Println("another one writes:", writes, err)
	must(catalogue.ReadLocker().UnlockContext(ctx))
	// Output:
	// another one reads: true <nil>
	// another one writes: false <nil>
}

// The lock of a file that other programs lock as well: flock(1) waits while this program holds it.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "filelock")
	must(err)
	defer os.RemoveAll(dir)
	var database *filelock.File
	database, err = filelock.Open(filepath.Join(dir, "backup"))
	must(err)
	ctx := context.Background()
	defer database.Close(ctx)

	err = locks.Do(ctx, database, func(context.Context) error {
		fmt.Println("flock backup -c true # waits now")
		return nil
	})
	fmt.Println(err)
	// Output:
	// flock backup -c true # waits now
	// <nil>
}
