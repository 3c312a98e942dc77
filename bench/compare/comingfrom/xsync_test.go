package comingfrom

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	xsemaphore "golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/semaphore"
)

func xsyncExport(ctx context.Context, pool *xsemaphore.Weighted, export func() error) error {
	if err := pool.Acquire(ctx, 2); err != nil {
		return err
	}
	defer pool.Release(2)
	return export()
}

func exportHere(ctx context.Context, pool *semaphore.Weighted, export func() error) error {
	if err := pool.Acquire(ctx, 2); err != nil {
		return err
	}
	defer pool.Release(2)
	return export()
}

func singleflightPrice(group *singleflight.Group, id string, ask func(id string) (int, error)) (int, error) {
	price, err, _ := group.Do(id, func() (any, error) { return ask(id) })
	if err != nil {
		return 0, err
	}
	return price.(int), nil
}

type priceList struct {
	articles keyed.Mutexes[string] // a lock for each article that goroutines want now
	cache    interface {
		get(id string) (int, bool)
		put(id string, price int)
	}
}

func (l *priceList) price(ctx context.Context, id string, ask func(id string) (int, error)) (price int, err error) {
	err = locks.Do(ctx, l.articles.Of(id), func(context.Context) error {
		if known, ok := l.cache.get(id); ok {
			price = known
			return nil
		}
		if price, err = ask(id); err == nil {
			l.cache.put(id, price)
		}
		return err
	})
	return price, err
}

// errgroup stays. Its goroutines are owners of their own, unless ctx has one for all of them.
func errgroupHere(ctx context.Context, mu *reentrant.Mutex, parts []func(ctx context.Context) error) error {
	job := locks.WithOwner(ctx, locks.NewOwner())
	return locks.Do(job, mu, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, part := range parts {
			g.Go(func() error { return part(ctx) }) // a part may acquire mu again
		}
		return g.Wait()
	})
}

type someCache map[string]int

func (c someCache) get(id string) (int, bool) { price, ok := c[id]; return price, ok }
func (c someCache) put(id string, price int)  { c[id] = price }

func TestTheProgramsForXSyncDoTheSame(t *testing.T) {
	ctx := t.Context()
	export := func() error { return nil }
	require.NoError(t, xsyncExport(ctx, xsemaphore.NewWeighted(4), export))
	require.NoError(t, exportHere(ctx, semaphore.NewWeighted(4), export))

	asked := 0
	ask := func(string) (int, error) { asked++; return 10, nil }
	var group singleflight.Group
	list := priceList{cache: someCache{}}
	for range 2 {
		theirs, err := singleflightPrice(&group, "tea", ask)
		require.NoError(t, err)
		ours, err := list.price(ctx, "tea", ask)
		require.NoError(t, err)
		require.Equal(t, theirs, ours)
	}
	require.Equal(t, 3, asked, "singleflight keeps nothing, and the list does")

	var n atomic.Int32
	mu := reentrant.New(locks.FIFO)
	part := func(ctx context.Context) error {
		return locks.Do(ctx, mu, func(context.Context) error { n.Add(1); return nil })
	}
	require.NoError(t, errgroupHere(ctx, mu, []func(context.Context) error{part, part}))
	require.EqualValues(t, 2, n.Load())
}

// An acquisition of more than the size waits for its ctx in x/sync, and fails at once here.
func TestTooManyPermitsFailAtOnce(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, xsemaphore.NewWeighted(1).Acquire(ended, 2), context.Canceled)
	require.ErrorIs(t, semaphore.NewWeighted(1).Acquire(t.Context(), 2), locks.ErrTooLarge)
}
