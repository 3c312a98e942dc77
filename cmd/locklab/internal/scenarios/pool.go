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
	Lesson: 85,
	Name:   "pool",
	Topic:  lab.T("Sharing", "共享"),
	Title:  lab.T("A semaphore as a pool", "用信号量实现资源池"),
	Question: lab.T("How do many goroutines share a few connections, and wait while all of them are out?",
		"许多 goroutine 怎样共用少量连接，并在全部借出时等待？"),
	Claim: lab.T("A semaphore has permits. An acquisition takes some of them, or waits until they are back. A "+
		"pool has one permit for each of its items: the semaphore makes goroutines wait, and a mutex "+
		"guards the list of items, for a moment only. A wait under that mutex would keep others from "+
		"bringing items back.\n\n"+
		"The order matters: first the item comes back, and then its permit. The other way round, a "+
		"goroutine may have a permit and find no item.\n\n"+
		"Permits have no owner, so another goroutine may release them. A large acquisition waits for "+
		"all its permits at once. If small ones could pass it, it might wait for ever.",
		`信号量有若干许可。获取操作取走一些许可，不够时就等待归还。资源池中每个资源对应一个许可：信号量让
 goroutine 等待，互斥锁只在极短的时间内保护资源列表。如果拿着互斥锁等待，别人就无法归还资源。

顺序很重要：先归还资源，再归还许可。反过来的话，goroutine 可能拿到许可却找不到资源。

许可没有所有者，所以可以由别的 goroutine 释放。数量大的获取要等所需的许可全部到齐；如果数量小的可以
插到它前面，它可能永远等下去。`),
	Look: lab.T("In the first picture more goroutines than items come to the pool. They get items in order of "+
		"arrival, and one wait ends by its limit. In the second the large acquisition wants all "+
		"permits, and one is free. The small one could have it, but it came later, and waits.",
		"第一幅图中，申请资源的 goroutine 比资源多。它们按到达顺序得到资源，有一次等待因时限结束。第"+
			"二幅图中，大的获取需要全部许可，而此时只有一个空闲。小的获取本可以拿走它，但来得更晚，只能等待。"),
	Found: lab.T(`{{.visitors}} goroutines shared {{.items}} items, and at most {{.most}} were out. The wait with a limit ended
after {{n .gaveUp}}, and took no item with it. Behind the large acquisition the small one waited {{n .smallWaited}},
although {{.free}} permit was free. In {{n .loans}} loans of a crowd no item was lent to two goroutines. In a pool that
shrank while its items were out, {{.missing}} permits were missing until the next releases.`,
		`{{.visitors}} 个 goroutine 共用 {{.items}} 个资源，最多同时借出 {{.most}} 个。有时限的等待
在 {{n .gaveUp}}
后结束，没有带走资源。排在大的获取后面的小的获取等待了 {{n .smallWaited}}，尽管有 {{.free}} 个许
可空闲。多个 goroutine 共借出 {{n .loans}} 次，没有一个资源同时借给两个 goroutine。资源借出期间
缩小的池欠缺 {{.missing}} 个许可，由后续的释放补足。`),
	Take: lab.T("Use `semaphore.Weighted` if a resource has several places, or if acquisitions are of "+
		"different sizes. Bring the item back before its permit. For a fixed number of items a "+
		"buffered channel of them does the same, without weights and without a change of the size.",
		"如果资源有多个名额，或者每次获取的数量不同，用 `semaphore.Weighted`。先归还资源，再归还许可。"+
			"资源数量固定时，用带缓冲的 channel 也可以，但没有权重，也不能改变大小。"),
	Java: lab.Same(`class Pool {
    private final Semaphore available = new Semaphore(SIZE, true);   // %s
    Item get() throws InterruptedException {
        available.acquire();
        return takeFree();           // synchronized
    }
    void put(Item item) {
        if (addFree(item))           // %s
            available.release();     // %s
    }
}`).With(lab.T("true: in order of arrival",
		"true：按到达顺序"), lab.T("synchronized; first the item,",
		"synchronized；先归还资源，"), lab.T("then its permit", "再归还许可")),
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
	l.Equal(int32(0), twice.Load(), lab.T("no item is lent to two goroutines at once",
		"没有一个资源同时借给两个 goroutine"))
	l.Equal(int64(3), p.available.Available(), lab.T("in the end all permits are back", "最后所有许可都已归还"))
	l.Observe("loans", goroutines*each)

	shrinking := semaphore.NewWeighted(3)
	l.Must(shrinking.Acquire(ctx, 3))
	shrinking.Resize(1)
	l.Equal(int64(-2), shrinking.Available(), lab.T("a pool that shrinks takes nothing from its holders",
		"池缩小时不会从持有者手中收回许可"))
	l.Observe("missing", -shrinking.Available())
	shrinking.Release(3)
	l.Equal(int64(1), shrinking.Available(), lab.T("the next releases pay for it",
		"欠缺的许可由后续的释放补足"))
	l.Is(semaphore.ErrTooLarge, shrinking.Acquire(ctx, 2), lab.T("more than the size is refused at once",
		"超过总数的申请立即被拒绝"))
	return nil
}

// lendTwo sends five goroutines to a pool of two items, one of them with a limit.
func lendTwo(l *lab.Lab) error {
	t := l.Timeline(lab.T("Two items for five",
		"五个 goroutine，两个资源"), lab.T("The goroutines get the items in order of arrival. The wait of "+
		"Cid has a limit.", "goroutine 按到达顺序得到资源。Cid 的等待有时限。"))
	p := newPool("the first item", "the second item")
	var mu sync.Mutex
	var order []string
	out, most := 0, 0
	var limited error
	names := []string{"Ann", "Bob", "Cid", "Dot", "Eve"}
	for i, name := range names {
		t.Go(lab.Same(name), func(ctx context.Context, me *lab.Lane) error {
			// The one before has an item, or waits for one.
			l.Until(lab.T("the goroutine before has come", "前一个 goroutine 已到"), func() bool {
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
			me.Is(lab.Waiting, lab.T("waits for an item", "等待资源"), func() { item, err = p.get(ctx) })
			mu.Lock()
			order = append(order, name)
			if name == "Cid" {
				limited = err
				l.Observe("gaveUp", time.Since(began))
			}
			if err != nil {
				mu.Unlock()
				me.Mark(lab.T("stops waiting", "不再等待"))
				me.Work(time.Millisecond)
				return nil
			}
			out++
			most = max(most, out)
			mu.Unlock()
			me.Is(lab.Exclusive, lab.T("has %s", "持有 %s").With(item), func() {
				if i < 2 { // until all others have come, and Cid has left
					l.Until(lab.T("the wait with a limit has ended", "有时限的等待已结束"), func() bool {
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
	l.Is(context.DeadlineExceeded, limited, lab.T("a wait with a limit ends by it", "有时限的等待到时就结束"))
	l.Equal(2, most, lab.T("no more items are out than there are", "借出的资源不超过总数"))
	l.Equal(int64(2), p.available.Available(), lab.T("a wait that ended took no permit",
		"已结束的等待没有取走许可"))
	l.Observe("visitors", len(names))
	l.Observe("items", 2)
	l.Observe("most", most)
	return nil
}

// waitBehindLarge begins a small acquisition behind a large acquisition that waits.
func waitBehindLarge(l *lab.Lab) {
	t := l.Timeline(lab.T("A small one behind a large one",
		"小的获取排在大的后面"), lab.T("One of two permits is free. The large acquisition wants "+
		"both, and the small one waits behind it.",
		"两个许可中有一个空闲。大的获取要两个，小的获取排在它后面等待。"))
	s := semaphore.NewWeighted(2)
	var mu sync.Mutex
	var order []string
	take := func(ctx context.Context, me *lab.Lane, n int64, inside func()) error {
		var err error
		me.Is(lab.Waiting, lab.T("waits", "等待"), func() { err = s.Acquire(ctx, n) })
		if err != nil {
			return err
		}
		mu.Lock()
		order = append(order, me.Name.EN)
		mu.Unlock()
		state := lab.Shared
		if n == 2 {
			state = lab.Exclusive
		}
		me.Is(state, lab.T("has its permits", "持有许可"), func() {
			inside()
			me.Work(2 * time.Millisecond)
		})
		s.Release(n)
		me.Work(time.Millisecond)
		return nil
	}
	var free int64
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		return take(ctx, me, 1, func() {
			l.Until(lab.T("both wait", "两者都在等待"), func() bool { return s.QueueLength() == 2 })
			me.Work(2 * time.Millisecond)
			free = s.Available()
		})
	})
	l.Until(lab.T("one permit is held", "一个许可已被占用"), func() bool { return s.Available() == 1 })
	t.Go(lab.T("large", "大"), func(ctx context.Context, me *lab.Lane) error { return take(ctx, me, 2, func() {}) })
	l.Until(lab.T("the large one waits", "大的获取在等待"), s.HasQueued)
	t.Go(lab.T("small", "小"), func(ctx context.Context, me *lab.Lane) error {
		began := time.Now()
		return take(ctx, me, 1, func() { l.Observe("smallWaited", time.Since(began)) })
	})
	t.Wait()
	l.Equal(int64(1), free, lab.T("a permit is free while both wait", "两者都在等待时，有一个许可空闲"))
	l.Equal([]string{"holder", "large", "small"}, order, lab.T("a small acquisition does not pass a large one",
		"小的获取不会越过大的获取"))
	l.Observe("free", free)
}
