package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// bulky is a store that releases many holds by one request. It notes how many, and fails for names
// of the test's choice.
type bulky struct {
	*client
	state sync.Mutex
	sizes []int
	fails map[string]int // how often
}

var _ driver.BatchReleaser = (*bulky)(nil)

func (b *bulky) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	b.state.Lock()
	b.sizes = append(b.sizes, len(ids))
	b.state.Unlock()
	done := make([]bool, len(ids))
	var failed error
	err := b.call(ctx, "release all", func() {
		for i, id := range ids {
			if b.fails[id.Name] > 0 {
				b.fails[id.Name]--
				failed = errNetwork
				continue
			}
			if r := b.s.live(id.Name); r != nil && r.acquisition == id.Acquisition {
				delete(b.s.locks, id.Name)
			}
			done[i] = true
		}
	})
	if err != nil {
		return nil, err
	}
	return done, failed
}

// holdMany has c hold n locks.
func holdMany(t *testing.T, c *lease.Client, n int) {
	o := as(locks.NewOwner())
	for i := range n {
		hold(t, c.Mutex(fmt.Sprint(i)), o)
	}
}

// held counts the locks that are held.
func (s *server) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.locks)
}

func TestCloseOfManyHoldsLastsAsLongAsItTakes(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := open(t, conn)
		holdMany(t, c, 3000)
		conn.set(func(c *client) { c.delay["release"] = 20 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		began := time.Now()
		require.NoError(t, c.Close(ctx))
		require.Greater(t, time.Since(began), lease.DefaultReleaseTimeout, "it is worth a test")
		require.Zero(t, s.held())
	})
}

func TestCloseReleasesInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := &bulky{client: s.connect()}
		c := open(t, conn)
		holdMany(t, c, 10_000)
		conn.set(func(c *client) { c.delay["release all"] = 40 * time.Millisecond })
		began := time.Now()
		require.NoError(t, c.Close(t.Context()))
		require.Less(t, time.Since(began), 500*time.Millisecond)
		require.Zero(t, s.held())
		require.Len(t, conn.sizes, 100)
		require.Zero(t, s.count("release"))
	})
}

func TestCloseRepeatsWhatABatchHasNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := &bulky{client: s.connect(), fails: map[string]int{"3": 2, "55": 1, "130": 4}}
		c := open(t, conn)
		holdMany(t, c, 200)
		conn.set(func(c *client) { c.dropReply["release all"] = 1 })
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, s.held())
		sent := 0
		for _, n := range conn.sizes {
			sent += n
		}
		require.LessOrEqual(t, sent, 200+100+2+1+4, "the others are not sent again")
	})
}

func TestCloseCountsWhatIsLeftInOneLine(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := open(t, conn)
		holdMany(t, c, 3000)
		conn.set(func(c *client) { c.delay["release"] = 20 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := c.Close(ctx)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		left, total := counts(t, err)
		require.Equal(t, 3000, total)
		require.GreaterOrEqual(t, left, s.held())
		require.LessOrEqual(t, left, s.held()+16, "requests without an answer")
		require.Greater(t, left, 2000)
	})
}

// counts returns the numbers in an error of Close, which is one line.
func counts(t *testing.T, err error) (left, total int) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	released := 0
	_, scanErr := fmt.Sscanf(err.Error(), "lease: close: %d of %d holds released; locks such as ", &released, &total)
	require.NoError(t, scanErr, "%v", err)
	require.Equal(t, 1, strings.Count(err.Error(), "close"))
	return total - released, total
}

func TestCloseGivesASilentStoreUp(t *testing.T) {
	for what, store := range map[string]func(*client) driver.Store{
		"a request for each": func(c *client) driver.Store { return c },
		"batches":            func(c *client) driver.Store { return &bulky{client: c} },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.connect()
				c := open(t, store(conn))
				holdMany(t, c, 250)
				conn.set(func(c *client) { c.delay["release"], c.delay["release all"] = time.Hour, time.Hour })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := c.Close(ctx)
				require.Equal(t, lease.DefaultReleaseTimeout, time.Since(began))
				left, total := counts(t, err)
				require.Equal(t, []int{250, 250}, []int{left, total})
				requireNone(t, err)
			})
		})
	}
}

func TestCloseOutlastsARefusal(t *testing.T) {
	inEachMood(t, func(t *testing.T, s *server, m *moody, _, _ *lease.Mutex, class string) {
		c := open(t, m)
		holdMany(t, c, 40)
		l, o := c.Mutex("released before"), as(locks.NewOwner())
		hold(t, l, o)
		m.refuse(classes[class].err)
		time.AfterFunc(500*time.Millisecond, func() { m.refuse(nil) })
		if errors.Is(classes[class].err, driver.ErrRefused) && !errors.Is(classes[class].err, driver.ErrUnavailable) {
			require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
		}
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, s.held(), "nothing is left for a lease")
	})
}

// elsewhere is a store whose releases say that the lock is not the hold's.
type elsewhere struct {
	*client
	err error
}

func (e elsewhere) Release(context.Context, driver.HoldID) (driver.Released, error) {
	return driver.Released{}, e.err
}

func TestCloseDoesNotCountWhatIsGone(t *testing.T) {
	for _, err := range []error{locks.ErrLost, locks.ErrForeign} {
		bubble(t, func(t *testing.T, s *server) {
			c := open(t, elsewhere{s.connect(), err})
			holdMany(t, c, 3)
			began := time.Now()
			require.NoError(t, c.Close(t.Context()))
			require.Zero(t, time.Since(began))
		})
	}
}

// ending is a store that checks the holds of another client when it releases.
type ending struct {
	bulky
	others func()
}

func (e *ending) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	e.others()
	return e.bulky.ReleaseAll(ctx, ids)
}

func TestAGroupTellsAllHoldersBeforeItReleases(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var g driver.Group[int, *lease.Client]
		var holds []locks.Hold
		for kind := range 3 {
			store := &ending{bulky: bulky{client: s.connect()}, others: func() {
				for _, h := range holds {
					assert.ErrorIs(t, h.Err(), locks.ErrClosed)
				}
			}}
			c, err := g.Client(kind, func() (*lease.Client, error) { return lease.New(store) })
			require.NoError(t, err)
			holds = append(holds, hold(t, c.Mutex(fmt.Sprint(kind)), as(locks.NewOwner())))
		}
		first, err := g.Close(t.Context())
		require.True(t, first)
		require.NoError(t, err)
		require.Zero(t, s.held())
	})
}

func TestAGroupCountsTheLocksOfAllItsClients(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var g driver.Group[int, *lease.Client]
		for kind, down := range []bool{false, true, true} {
			conn := s.connect()
			c, err := g.Client(kind, func() (*lease.Client, error) { return lease.New(conn) })
			require.NoError(t, err)
			o := as(locks.NewOwner())
			for i := range 10 * (kind + 1) {
				hold(t, c.Mutex(fmt.Sprint(kind, i)), o)
			}
			conn.set(func(c *client) { c.down = down })
		}
		_, err := g.Close(t.Context())
		left, total := counts(t, err)
		require.Equal(t, []int{50, 60}, []int{left, total})
		require.ErrorIs(t, err, errNetwork)
	})
}
