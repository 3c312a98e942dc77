package caslock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
)

// A job runs in one process at a time. It stops if the lock is lost, and its writes carry the
// token.
func ExampleClient_Mutex() {
	ctx := context.Background()
	client, err := caslock.New(newServer(), caslock.WithTTL(time.Minute), caslock.WithLabel("report-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	var nightly *lease.Mutex = client.Mutex("nightly")

	// A holder that died keeps the lock for a lease. So the limit is longer.
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = locks.Do(limited, nightly, func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		info, err := nightly.Inspect(ctx)
		if err != nil {
			return err
		}
		fmt.Println("token", hold.Token(), "of", info.Holders[0].Label)
		return ctx.Err() // ended, if the lock was lost
	})
	fmt.Println(err)
	// Output:
	// token 1 of report-1
	// <nil>
}

// At most three jobs run at once in all processes. Each job that dies gives its place back with its
// lease.
func ExampleClient_Semaphore() {
	ctx := context.Background()
	client, err := caslock.New(newServer())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	permits, err := client.Semaphore("jobs", 3).AcquireContext(ctx, 2) // two of three, in all processes
	if err != nil {
		fmt.Println(err)
		return
	}
	_, ok, err := client.Semaphore("jobs", 3).TryAcquireContext(ctx, 2)
	fmt.Println(permits.Count(), ok, err)
	err = permits.ReleaseContext(ctx)
	fmt.Println(err)
	// Output:
	// 2 false <nil>
	// <nil>
}

// shelf is a store that has all that a Documents may have.
type shelf struct{ listed }

// Watch waits for one change after the other.
func (s shelf) Watch(ctx context.Context, name string, changed func()) error {
	return (&watching{server: s.server}).Watch(ctx, name, changed)
}

// CheckName refuses what the store would.
func (s shelf) CheckName(name string) error {
	if strings.Contains(name, "/") {
		return errors.New("the name has a slash")
	}
	return nil
}

func ExampleClient_Sweep() {
	ctx := context.Background()
	var store interface {
		caslock.Documents
		caslock.Watcher     // waiters do not poll
		caslock.Lister      // Names and Sweep
		caslock.Deleter     // Sweep
		caslock.NameChecker // names that the store cannot have
	} = shelf{listed{newServer()}}
	client, err := caslock.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	fmt.Println(client.Mutex("a/b").LockContext(ctx))

	err = locks.Do(ctx, client.Mutex("order-17"), func(context.Context) error { return nil })
	names, _ := client.Names(ctx, "order-*")
	fmt.Println(names, err)

	// Nobody asks for this order again. Its token need not grow any more.
	fmt.Println(client.Sweep(ctx, "order-*", 0))
	// Output:
	// caslock: lock "a/b": the name has a slash
	// [order-17] <nil>
	// [order-17] <nil>
}

// brief is a Format that keeps only what it must.
type brief struct{}

// Encode rounds the lease up.
func (brief) Encode(r caslock.Record) ([]byte, error) {
	return json.Marshal([]any{r.Holder, int64(r.Lease/time.Second) + 1, r.Token, r.Nonce})
}

// Decode is the reverse of Encode.
func (brief) Decode(data []byte) (r caslock.Record, err error) {
	var seconds int64
	fields := []any{&r.Holder, &seconds, &r.Token, &r.Nonce}
	err = json.Unmarshal(data, &fields)
	r.Lease = time.Duration(seconds) * time.Second
	return r, err
}

// Documents look as another program wants them to.
func ExampleFormat() {
	var format caslock.Format = brief{}
	data, err := format.Encode(caslock.Record{Token: 7, Nonce: "GX5T"})
	fmt.Println(string(data), err)
	client, err := caslock.New(newServer(), caslock.WithFormat(format))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	fmt.Println(locks.Do(context.Background(), client.Mutex("orders"), func(context.Context) error { return nil }))
	// Output:
	// ["",1,7,"GX5T"] <nil>
	// <nil>
}
