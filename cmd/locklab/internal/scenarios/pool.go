package scenarios

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/semaphore"
)

var _ = register(lab.Scenario{
	Lesson:   85,
	Name:     "pool",
	Topic:    "Sharing",
	Title:    "A semaphore as a pool",
	Question: "How do many goroutines share a few connections, and wait while all of them are out?",
	Claim: "A semaphore has permits. An acquisition takes some of them, or waits until they are back. A " +
		"pool has one permit for each of its items: the semaphore makes goroutines wait, and a mutex " +
		"guards the list of items, for a moment only. A wait under that mutex would keep others from " +
		"bringing items back.\n\n" +
		"The order matters: first the item comes back, and then its permit. The other way round, a " +
		"goroutine may have a permit and find no item.\n\n" +
		"Permits have no owner, so another goroutine may release them. A large acquisition waits for " +
		"all its permits at once. If small ones could pass it, it might wait for ever.",
	Look: "In the first picture more goroutines than items come to the pool. They get items in order of " +
		"arrival, and one wait ends by its limit. In the second the large acquisition wants all " +
		"permits, and one is free. The small one could have it, but it came later, and waits.",
	Found: `{{.visitors}} goroutines shared {{.items}} items, and at most {{.most}} were out. The wait with a limit ended
after {{n .gaveUp}}, and took no item with it. Behind the large acquisition the small one waited {{n .smallWaited}},
although {{.free}} permit was free. In {{n .loans}} loans of a crowd no item was lent to two goroutines. In a pool that
shrank while its items were out, {{.missing}} permits were missing until the next releases.`,
	Take: "Use `semaphore.Weighted` if a resource has several places, or if acquisitions are of " +
		"different sizes. Bring the item back before its permit. For a fixed number of items a " +
		"buffered channel of them does the same, without weights and without a change of the size.",
	Java: `class Pool {
    private final Semaphore available = new Semaphore(SIZE, true);   // true: in order of arrival
    Item get() throws InterruptedException {
        available.acquire();
        return takeFree();           // synchronized
    }
    void put(Item item) {
        if (addFree(item))           // synchronized; first the item,
            available.release();     // then its permit
    }
}`,
	Run: lends,
})

//lab:show

// pool lends each item to one goroutine at a time.
type pool struct {
	available *semaphore.Weighted // one permit for each item that is here
	mu        fair.BargingMutex
	items     []string
}

func newPool(items ...string) *pool {
	return &pool{available: semaphore.NewWeighted(int64(len(items))), items: items}
}

// get waits for an item until ctx ends.
func (p *pool) get(ctx context.Context) (item string, err error) {
	if err := p.available.Acquire(ctx, 1); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.items) - 1
	item, p.items = p.items[last], p.items[:last]
	return item, nil
}

// put brings an item back, and then its permit.
func (p *pool) put(item string) {
	p.add(item)
	p.available.Release(1)
}

// putLate is wrong: a goroutine that gets the permit may find no item.
func (p *pool) putLate(item string) {
	p.available.Release(1)
	p.add(item)
}

func (p *pool) add(item string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = append(p.items, item)
}

//lab:end

func lends(ctx context.Context, l *lab.Lab) error {
	if err := lendTwo(l); err != nil {
		return err
	}
	waitBehindLarge(l)

	p := newPool("one", "two", "three")
	uses := map[string]*atomic.Int32{"one": {}, "two": {}, "three": {}}
	var twice atomic.Int32
	var crowd sync.WaitGroup
	const goroutines = 8
	each := lab.Pick(l, 200, 5_000)
	failed := make(chan error, goroutines)
	for range goroutines {
		crowd.Go(func() {
			for range each {
				item, err := p.get(ctx)
				if err != nil {
					failed <- err
					return
				}
				if uses[item].Add(1) > 1 {
					twice.Add(1)
				}
				uses[item].Add(-1)
				p.put(item)
			}
		})
	}
	crowd.Wait()
	close(failed)
	l.Must(<-failed)
	l.Equal(int32(0), twice.Load(), "no item is lent to two goroutines at once")
	l.Equal(int64(3), p.available.Available(), "in the end all permits are back")
	l.Observe("loans", goroutines*each)

	shrinking := semaphore.NewWeighted(3)
	l.Must(shrinking.Acquire(ctx, 3))
	shrinking.Resize(1)
	l.Equal(int64(-2), shrinking.Available(), "a pool that shrinks takes nothing from its holders")
	l.Observe("missing", -shrinking.Available())
	shrinking.Release(3)
	l.Equal(int64(1), shrinking.Available(), "the next releases pay for it")
	l.Is(semaphore.ErrTooLarge, shrinking.Acquire(ctx, 2), "more than the size is refused at once")
	return nil
}

// lendTwo has five goroutines come to a pool of two items, one of them with a limit.
func lendTwo(l *lab.Lab) error {
	t := l.Timeline("Two items for five", "The goroutines get the items in order of arrival. The wait of "+
		"Cid has a limit.")
	p := newPool("the first item", "the second item")
	var mu sync.Mutex
	var order []string
	out, most := 0, 0
	var limited error
	names := []string{"Ann", "Bob", "Cid", "Dot", "Eve"}
	for i, name := range names {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			// The one before has an item, or waits for one.
			l.Until("the goroutine before has come", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(order)+p.available.QueueLength() >= i
			})
			if name == "Cid" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 4*time.Millisecond)
				defer cancel()
			}
			var item string
			var err error
			began := time.Now()
			me.Is(lab.Waiting, "waits for an item", func() { item, err = p.get(ctx) })
			mu.Lock()
			order = append(order, name)
			if name == "Cid" {
				limited = err
				l.Observe("gaveUp", time.Since(began))
			}
			if err != nil {
				mu.Unlock()
				me.Mark("stops waiting")
				me.Work(time.Millisecond)
				return nil
			}
			out++
			most = max(most, out)
			mu.Unlock()
			me.Is(lab.Exclusive, "has "+item, func() {
				if i < 2 { // until all others have come, and Cid has left
					l.Until("the wait with a limit has ended", func() bool {
						mu.Lock()
						defer mu.Unlock()
						return slices.Contains(order, "Cid") && len(order)+p.available.QueueLength() >= len(names)
					})
				}
				me.Work(time.Duration(2+i) * time.Millisecond)
			})
			mu.Lock()
			out--
			mu.Unlock()
			p.put(item)
			me.Work(time.Millisecond)
			return nil
		})
	}
	t.Wait()
	if limited == nil {
		return errors.New("there was an item for the goroutine with a limit")
	}
	l.Is(context.DeadlineExceeded, limited, "a wait with a limit ends by it")
	l.Equal(2, most, "no more items are out than there are")
	l.Equal(int64(2), p.available.Available(), "a wait that ended took no permit")
	l.Observe("visitors", len(names))
	l.Observe("items", 2)
	l.Observe("most", most)
	return nil
}

// waitBehindLarge has a small acquisition come after a large one that waits.
func waitBehindLarge(l *lab.Lab) {
	t := l.Timeline("A small one behind a large one", "One of two permits is free. The large acquisition wants "+
		"both, and the small one waits behind it.")
	s := semaphore.NewWeighted(2)
	var mu sync.Mutex
	var order []string
	take := func(ctx context.Context, me *lab.Lane, n int64, inside func()) error {
		var err error
		me.Is(lab.Waiting, "waits", func() { err = s.Acquire(ctx, n) })
		if err != nil {
			return err
		}
		mu.Lock()
		order = append(order, me.Name)
		mu.Unlock()
		state := lab.Shared
		if n == 2 {
			state = lab.Exclusive
		}
		me.Is(state, "has its permits", func() {
			inside()
			me.Work(2 * time.Millisecond)
		})
		s.Release(n)
		me.Work(time.Millisecond)
		return nil
	}
	var free int64
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		return take(ctx, me, 1, func() {
			l.Until("both wait", func() bool { return s.QueueLength() == 2 })
			me.Work(2 * time.Millisecond)
			free = s.Available()
		})
	})
	l.Until("one permit is held", func() bool { return s.Available() == 1 })
	t.Go("large", func(ctx context.Context, me *lab.Lane) error { return take(ctx, me, 2, func() {}) })
	l.Until("the large one waits", s.HasQueued)
	t.Go("small", func(ctx context.Context, me *lab.Lane) error {
		began := time.Now()
		return take(ctx, me, 1, func() { l.Observe("smallWaited", time.Since(began)) })
	})
	t.Wait()
	l.Equal(int64(1), free, "a permit is free while both wait")
	l.Equal([]string{"holder", "large", "small"}, order, "a small acquisition does not pass a large one")
	l.Observe("free", free)
}
