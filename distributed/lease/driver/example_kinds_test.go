package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func newMemory() *memory { return &memory{holds: make(map[string]memoryHold)} }

func opened(s driver.Store, opts ...lease.Option) *lease.Client {
	client, err := lease.New(s, opts...)
	if err != nil {
		panic(err)
	}
	return client
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// An adapter with two kinds of lock has one Client for each, which a Group opens at first use and
// closes together.
func ExampleGroup() {
	ctx := context.Background()
	var kinds driver.Group[string, *lease.Client]
	for _, kind := range []string{"plain", "fair", "plain"} {
		_, err := kinds.Client(kind, func() (*lease.Client, error) {
			fmt.Printf("open a %s one;\n", kind)
			return lease.New(newMemory())
		})
		must(err)
	}
	fmt.Println(kinds.Close(ctx))
	// Output:
	// open a plain one;
	// open a fair one;
	// true <nil>
}

// forcible can free a lock without its holder.
type forcible struct{ *memory }

func (f forcible) Break(_ context.Context, name string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := time.Now().Before(f.holds[name].ends)
	delete(f.holds, name)
	return held, nil
}

func ExampleBreaker() {
	var store driver.Breaker = forcible{newMemory()}
	ctx := context.Background()
	client := opened(store.(driver.Store))
	defer client.Close(ctx)

	orders := client.Mutex("orders")
	must(orders.LockContext(ctx))
	freed, err := orders.ForceUnlock(ctx)
	must(err)
	fmt.Println("freed:", freed, "and lost:", errors.Is(orders.UnlockContext(ctx), locks.ErrLost))
	// Output: freed: true and lost: true
}

// batched releases all holds of a client by one request.
type batched struct{ *memory }

func (b batched) ReleaseAll(_ context.Context, ids []driver.HoldID) ([]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answered := make([]bool, len(ids))
	for i, id := range ids {
		if b.holds[id.Name].acquisition == id.Acquisition {
			delete(b.holds, id.Name)
		}
		answered[i] = true
	}
	fmt.Printf("one request for %d holds;\n", len(ids))
	return answered, nil
}

func ExampleBatchReleaser() {
	var store driver.BatchReleaser = batched{newMemory()}
	ctx := context.Background()
	client := opened(store.(driver.Store))
	for _, name := range []string{"orders", "stock", "users"} {
		must(client.Mutex(name).LockContext(ctx))
	}
	fmt.Println(client.Close(ctx))
	// Output:
	// one request for 3 holds;
	// <nil>
}

// watched knows at once when a hold has ended.
type watched struct {
	*memory
	lost func(id driver.HoldID, cause error)
}

func (w *watched) NotifyLoss(lost func(id driver.HoldID, cause error)) { w.lost = lost }

// remove acts as an administrator who deletes the lock.
func (w *watched) remove(name string) {
	w.mu.Lock()
	id := driver.HoldID{Name: name, Acquisition: w.holds[name].acquisition}
	delete(w.holds, name)
	w.mu.Unlock()
	w.lost(id, errors.New("the entry was removed"))
}

func ExampleLossNotifier() {
	store := &watched{memory: newMemory()}
	var _ driver.LossNotifier = store
	ctx := context.Background()
	client := opened(store)
	defer client.Close(ctx)

	orders := client.Mutex("orders")
	must(orders.LockContext(ctx))
	hold, err := orders.Hold(ctx)
	must(err)
	store.remove("orders")
	<-hold.Lost()
	fmt.Println(errors.Is(hold.Err(), locks.ErrLost))
	_ = orders.UnlockContext(ctx) // it reports the loss as well
	// Output: true
}

// polite says whether other processes wait. While none does, a release hands the lock to the next
// goroutine of this process without a request.
type polite struct {
	*memory
	acquired, asked atomic.Int32
}

func (p *polite) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	p.acquired.Add(1)
	return p.memory.Acquire(ctx, req)
}

func (p *polite) Contended(context.Context, string) (bool, error) {
	p.asked.Add(1)
	return false, nil
}

func ExampleContentionProber() {
	store := &polite{memory: newMemory()}
	var _ driver.ContentionProber = store
	ctx := context.Background()
	client := opened(store)
	defer client.Close(ctx)

	orders := client.Mutex("orders")
	must(orders.LockContext(ctx))
	done := make(chan error)
	go func() { done <- locks.Do(ctx, orders, func(context.Context) error { return nil }) }()
	for orders.QueueLength() == 0 {
		time.Sleep(time.Millisecond)
	}
	must(orders.UnlockContext(ctx))
	must(<-done)
	fmt.Println("requests for two holds:", store.acquired.Load())
	// Output: requests for two holds: 1
}

// prompt never waits for an answer for longer than its context has time.
type prompt struct {
	*memory
	released locks.Owner // the goroutine that called Release last
}

func (p *prompt) ReleaseHeedsDeadline() bool { return true }

func (p *prompt) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	p.released = locks.CurrentOwner(context.Background())
	return p.memory.Release(ctx, id)
}

func ExampleReleaseHeedsDeadline() {
	store := &prompt{memory: newMemory()}
	var _ driver.ReleaseHeedsDeadline = store
	ctx := context.Background()
	client := opened(store)
	defer client.Close(ctx)

	orders := client.Mutex("orders")
	must(orders.LockContext(ctx))
	must(orders.UnlockContext(ctx))
	fmt.Println("in this goroutine:", store.released == locks.CurrentOwner(ctx))
	// Output: in this goroutine: true
}

// ordered keeps the order in which its clients asked.
type ordered struct {
	*memory
	places []string // the acquisitions that wait, of one lock
}

func (q *ordered) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	q.mu.Lock()
	if !slices.Contains(q.places, req.Acquisition) {
		q.places = append(q.places, req.Acquisition)
	}
	first := q.places[0] == req.Acquisition
	q.mu.Unlock()
	if !first {
		return driver.Reply{Wait: time.Second}, nil
	}
	reply, err := q.Acquire(ctx, req)
	if reply.Held {
		err = errors.Join(err, q.Leave(ctx, req.HoldID))
	}
	return reply, err
}

func (q *ordered) Leave(_ context.Context, id driver.HoldID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.places = slices.DeleteFunc(q.places, func(place string) bool { return place == id.Acquisition })
	return nil
}

func (q *ordered) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.places)
}

func ExampleQueue() {
	store := &ordered{memory: newMemory()}
	var _ driver.Queue = store
	ctx := context.Background()
	holder, waiter := opened(store), opened(store, lease.WithPoll(time.Millisecond))
	defer holder.Close(ctx)
	defer waiter.Close(ctx)

	must(holder.Mutex("orders").LockContext(ctx))
	done := make(chan error)
	go func() {
		done <- locks.Do(ctx, waiter.Mutex("orders"), func(context.Context) error { return nil })
	}()
	for store.waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := store.waiting()
	must(holder.Mutex("orders").UnlockContext(ctx))
	must(<-done)
	fmt.Println("waiting:", before, "and then:", store.waiting())
	// Output: waiting: 1 and then: 0
}

// tied holds its locks for as long as the session of a connection lasts.
type tied struct{ *memory }

func (tied) Term() time.Duration   { return 10 * time.Second }
func (tied) Lost(id driver.HoldID) { fmt.Println("the session frees", id.Name) }

func ExampleSession() {
	var store driver.Session = tied{newMemory()}
	ctx := context.Background()
	client := opened(store.(driver.Store))
	defer client.Close(ctx)

	orders := client.Mutex("orders")
	must(orders.LockContext(ctx))
	hold, err := orders.Hold(ctx)
	must(err)
	end, _ := hold.Deadline()
	fmt.Println(time.Until(end) <= store.Term())
	must(orders.UnlockContext(ctx))
	// Output: true
}

// An adapter has options of its own, and sets the defaults of its store in front of the options of
// its users.
func ExampleConfig() {
	var slow lease.Option = func(c *driver.Config) { c.Poll = time.Minute } // each request costs money
	_, err := lease.New(newMemory(), driver.WithErrorPrefix("memory"), slow, lease.WithTTL(-time.Second))
	fmt.Println(err)
	// Output: memory: TTL of -1s, at least 1ms is needed
}

// The adapter refuses a name that its store cannot have. Each method of the lock returns the error.
func ExampleMutexConfig() {
	ctx := context.Background()
	client := opened(newMemory(), driver.WithErrorPrefix("memory"))
	defer client.Close(ctx)

	long := strings.Repeat("x", 300)
	var refused lease.MutexOption = func(c *driver.MutexConfig) {
		if len(long) > 255 {
			driver.WithRefusal(fmt.Errorf("the name has %d bytes, at most 255 are allowed", len(long)))(c)
		}
	}
	err := client.Mutex(long, refused).LockContext(ctx)
	fmt.Println(errors.Is(err, fs.ErrInvalid))
	// Output: true
}
