package comingfrom

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/singleton"
)

type syncCounter struct {
	mu sync.Mutex
	n  int
}

func (c *syncCounter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

type counter struct {
	mu fair.BargingMutex
	n  int
}

func (c *counter) addWithin(ctx context.Context) error {
	if err := c.mu.LockContext(ctx); err != nil {
		return err
	}
	defer c.mu.Unlock()
	c.n++
	return nil
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

type syncQueue struct {
	mu       sync.Mutex
	notEmpty *sync.Cond
	items    []int
}

func (q *syncQueue) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		q.notEmpty.Wait()
	}
	first := q.items[0]
	q.items = q.items[1:]
	return first
}

type queue struct {
	mu       fair.BargingMutex
	notEmpty *condition.Cond // mu.NewCond()
	items    []int
}

func (q *queue) take(ctx context.Context) (int, error) {
	if err := q.mu.LockContext(ctx); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if err := q.notEmpty.WaitContext(ctx); err != nil {
			return 0, err
		}
	}
	first := q.items[0]
	q.items = q.items[1:]
	return first, nil
}

type syncCache struct {
	mu sync.RWMutex
	m  map[string]int
}

func (c *syncCache) get(key string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[key]
}

type cache struct {
	mu rwlock.RWMutex // or fair.RWMutex, if another goroutine unlocks
	m  map[string]int
}

func (c *cache) get(key string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[key]
}

var errDown = errors.New("down")

func TestTheProgramsForSyncDoTheSame(t *testing.T) {
	var theirs syncCounter
	var ours counter
	theirs.add()
	ours.add()
	require.Equal(t, theirs.n, ours.n)

	held, done := make(chan struct{}), make(chan struct{})
	go func() {
		ours.mu.Lock()
		defer ours.mu.Unlock()
		close(held)
		<-done
	}()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ours.addWithin(ctx), context.DeadlineExceeded)
	close(done)

	their := syncQueue{items: []int{1}}
	their.notEmpty = sync.NewCond(&their.mu)
	our := queue{items: []int{1}}
	our.notEmpty = our.mu.NewCond()
	first, err := our.take(t.Context())
	require.NoError(t, err)
	require.Equal(t, their.take(), first)
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = our.take(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.Equal(t, (&syncCache{m: map[string]int{"a": 1}}).get("a"), (&cache{m: map[string]int{"a": 1}}).get("a"))
}

// A construction that failed stays failed in sync, and is repeated here.
func TestAFailedConstructionIsRepeatedHereOnly(t *testing.T) {
	tries := 0
	connect := func() (int, error) {
		if tries++; tries == 1 {
			return 0, errDown
		}
		return 7, nil
	}
	theirs := sync.OnceValues(connect)
	_, err := theirs()
	require.ErrorIs(t, err, errDown)
	_, err = theirs()
	require.ErrorIs(t, err, errDown)

	tries = 0
	ours := singleton.New(connect)
	_, err = ours.Get()
	require.ErrorIs(t, err, errDown)
	value, err := ours.Get()
	require.NoError(t, err)
	require.Equal(t, 7, value)
}

// The unlock by another goroutine is right with sync and fair, and wrong with an owner.
func TestAnotherGoroutineMayUnlockOnlyWithoutOwners(t *testing.T) {
	elsewhere := func(unlock func() error) error {
		done := make(chan error)
		go func() { done <- unlock() }()
		return <-done
	}
	var plain fair.Mutex
	plain.Lock()
	require.NoError(t, elsewhere(func() error { plain.Unlock(); return nil }))

	var owned reentrant.Mutex
	owned.Lock()
	require.ErrorIs(t, elsewhere(func() error { return owned.UnlockContext(t.Context()) }), locks.ErrNotHeld)
	owned.Unlock()

	job := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, owned.LockContext(job))
	require.NoError(t, elsewhere(func() error { return owned.UnlockContext(job) }))
}
