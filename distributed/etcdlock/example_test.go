package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
)

func ExampleClient_Mutex() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"localhost:2379"},
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	provider, err := etcdlock.New(client, etcdlock.WithTTL(10*time.Second))
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())

	err = locks.Do(context.Background(), provider.Mutex("orders"), func(ctx context.Context) error {
		// ctx ends when the lock is lost, because the cluster could not be reached for too long.
		return work(ctx)
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
}

// A client that connects again soon, and logs in again on servers of version 3.4.
func ExampleDialOptions() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"localhost:2379"},
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          etcdlock.DialOptions(),
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	provider, err := etcdlock.New(client, etcdlock.WithTTL(3*time.Second))
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())
}

// Programs that take etcd's own mutex are excluded.
func ExampleClient_Prefix() {
	var (
		session  *concurrency.Session // of another program
		provider *etcdlock.Client
	)
	theirs := concurrency.NewMutex(session, provider.Prefix("orders"))
	ours := provider.Mutex("orders") // the same lock
	_, _ = theirs, ours
}

// Another program locks a prefix that no name of this client has.
func ExampleClient_MutexLocker() {
	var (
		session  *concurrency.Session // of another program
		provider *etcdlock.Client
	)
	theirs := concurrency.NewMutex(session, "/jobs/nightly")
	ours := provider.MutexLocker("/jobs/nightly") // the same lock
	_, _ = theirs, ours
}

// A writer that goes on to read what it has written, together with others.
func ExampleClient_RWMutex() {
	var provider *etcdlock.Client
	ctx := context.Background()
	rw := provider.RWMutex("catalogue")
	if err := rw.WriteLocker().LockContext(ctx); err != nil {
		panic(err)
	}
	// write
	err := rw.ReadLocker().LockContext(ctx) // the writer may read too
	if err := errors.Join(err, rw.WriteLocker().UnlockContext(ctx)); err != nil {
		panic(err)
	}
	// read: no other process has written meanwhile
	if err := rw.ReadLocker().UnlockContext(ctx); err != nil {
		panic(err)
	}
}

// At most three of these jobs run in all processes together.
func ExampleClient_Semaphore() {
	var provider *etcdlock.Client // as in the example of Client.Mutex
	ctx := context.Background()
	permits, err := provider.Semaphore("jobs", 3).AcquireContext(ctx, 1)
	if err != nil {
		panic(err)
	}
	_ = work(ctx)
	if err := permits.ReleaseContext(ctx); errors.Is(err, locks.ErrLost) {
		fmt.Println("more than three may have run")
	}
}

func work(context.Context) error { return nil }

// The token of a hold is the revision of its key. A resource that compares tokens refuses the write
// of a holder that has lost the lock.
func ExampleClient_Mutex_hold() {
	var provider *etcdlock.Client // as in the example of Client.Mutex
	var orders *lease.Mutex = provider.Mutex("orders")
	ctx := context.Background()
	if err := orders.LockContext(ctx); err != nil {
		panic(err)
	}
	hold, err := orders.Hold(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("write with token", hold.Token())
	if err := orders.UnlockContext(ctx); errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
}
