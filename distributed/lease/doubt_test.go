package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// straggling is a store with a queue. A request that is told to straggle gets no answer. It is
// carried out after a delay, or never if the delay is 0.
type straggling struct {
	queued
	state    sync.Mutex
	straggle []time.Duration // of the next requests
	ids      []string        // the acquisitions of all requests
}

func (s *straggling) next(acquisition string) (by time.Duration, straggles bool) {
	s.state.Lock()
	defer s.state.Unlock()
	s.ids = append(s.ids, acquisition)
	if len(s.straggle) == 0 {
		return 0, false
	}
	by, s.straggle = s.straggle[0], s.straggle[1:]
	return by, true
}

// late has the next requests straggle.
func (s *straggling) late(by ...time.Duration) {
	s.state.Lock()
	defer s.state.Unlock()
	s.straggle = by
}

func (s *straggling) asked() []string {
	s.state.Lock()
	defer s.state.Unlock()
	return s.ids
}

func (s *straggling) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	by, straggles := s.next(req.Acquisition)
	if !straggles {
		return s.queued.Enqueue(ctx, req)
	}
	if by > 0 {
		time.AfterFunc(by, func() { s.queued.Enqueue(context.Background(), req) })
	}
	return driver.Reply{}, errNetwork
}

// polled is such a store without a queue.
type polled struct {
	driver.Store
	s *straggling
}

func (p polled) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	by, straggles := p.s.next(req.Acquisition)
	if !straggles {
		return p.Store.Acquire(ctx, req)
	}
	if by > 0 {
		time.AfterFunc(by, func() { p.Store.Acquire(context.Background(), req) })
	}
	return driver.Reply{}, errNetwork
}

// withAStraggler runs f with a waiter for a lock of rival. The waiter's second request is carried
// out after 10 s, when the third one has got the lock. f ends the waiter's hold.
func withAStraggler(t *testing.T, f func(s *server, l *lease.Mutex, o context.Context)) {
	for _, refused := range []bool{false, true} {
		behindStragglers(t, refused, []time.Duration{10 * time.Second},
			func(s *server, _ *client, l *lease.Mutex, o context.Context) { f(s, l, o) })
	}
}

// behindStragglers is withAStraggler for requests that are carried out after these times, the last
// of which is 10 s.
func behindStragglers(t *testing.T, refused bool, by []time.Duration,
	f func(s *server, conn *client, l *lease.Mutex, o context.Context)) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		conn := s.connect()
		store := &straggling{queued: queued{conn, waiting}}
		l, rival := open(t, store).Mutex("it"), open(t, queued{s.connect(), waiting}).Mutex("it")
		o, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, rival, b)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		store.late(by...)
		if refused { // the request after the straggler
			time.Sleep(lease.DefaultPoll + 100*time.Millisecond)
			require.Len(t, store.asked(), 5, "two before the wait, and two after the straggler")
		}
		require.NoError(t, rival.UnlockContext(b)) // which wakes the waiter
		require.NoError(t, <-got)
		f(s, conn, l, o)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.holder("it") != "" { // the straggler has taken it
			time.Sleep(term / 5)
		}
		require.Empty(t, s.holder("it"), "nobody has it")
		require.NoError(t, l.LockContext(o))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestEachLateRequestIsUndoneAfterARelease(t *testing.T) {
	by := []time.Duration{time.Second, 10 * time.Second}
	behindStragglers(t, false, by, func(s *server, _ *client, l *lease.Mutex, o context.Context) {
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

// The second request gets the lock after 30 ms. This request and some of the next get no answer. So
// the store counts the lease from before the next requests are sent.
func TestLookupBeginsNoLeaseOfAnEarlierRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		l := open(t, store, lease.WithMargin(0)).Mutex("it")
		rival := open(t, queued{s.connect(), waiting}).Mutex("it")
		o, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, rival, b)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		store.late(30*time.Millisecond, 0, 0, 0)
		require.NoError(t, rival.UnlockContext(b)) // which wakes the waiter
		require.NoError(t, <-got)
		h, err := l.Hold(o)
		require.NoError(t, err)
		ends, _ := h.Deadline()
		s.mu.Lock()
		expires := s.live("it").expires
		s.mu.Unlock()
		require.False(t, ends.After(expires), "the hold ends %v after the store's", ends.Sub(expires))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestALateRequestIsUndoneThoughTheReleaseHasNoAnswer(t *testing.T) {
	behindStragglers(t, false, []time.Duration{10 * time.Second},
		func(_ *server, conn *client, l *lease.Mutex, o context.Context) {
			conn.set(func(c *client) { c.down = true })
			require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
			conn.set(func(c *client) { c.down = false })
		})
}

func TestALateRequestIsUndoneAfterARelease(t *testing.T) {
	withAStraggler(t, func(s *server, l *lease.Mutex, o context.Context) {
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

// requireEndsInTime fails if, in one of n seconds, h would end here after its end in the store.
func requireEndsInTime(t *testing.T, s *server, h locks.Hold, n int) {
	t.Helper()
	for range n {
		time.Sleep(time.Second)
		ends, _ := h.Deadline()
		s.mu.Lock()
		expires := s.live("it").expires
		s.mu.Unlock()
		require.False(t, ends.After(expires), "the hold ends %v after the store's", ends.Sub(expires))
	}
}

// The straggler, which the store takes for a repetition, sets the lease to its first length.
func TestALateRequestShortensALongExtension(t *testing.T) {
	withAStraggler(t, func(s *server, l *lease.Mutex, o context.Context) {
		h, err := l.Hold(o)
		require.NoError(t, err)
		require.NoError(t, h.Extend(o, 3*term))
		requireEndsInTime(t, s, h, 15) // the straggler comes after ten seconds
		require.NoError(t, l.UnlockContext(o))
	})
}

// The doubt about the straggler has ended by then, but not the time for which it may be on its way.
func TestARequestThatIsALeaseLateShortensALongExtension(t *testing.T) {
	behindStragglers(t, false, []time.Duration{term + 5*time.Second},
		func(s *server, _ *client, l *lease.Mutex, o context.Context) {
			h, err := l.Hold(o)
			require.NoError(t, err)
			time.Sleep(term + time.Second)
			require.NoError(t, h.Extend(o, 10*term))
			requireEndsInTime(t, s, h, 30) // the straggler comes after four seconds
			require.NoError(t, l.UnlockContext(o))
		})
}

func TestALateRequestIsUndoneAfterALoss(t *testing.T) {
	withAStraggler(t, func(s *server, l *lease.Mutex, o context.Context) {
		h, err := l.Hold(o)
		require.NoError(t, err)
		s.evict("it")
		require.ErrorIs(t, h.Extend(o, term), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
	})
}

func TestALateRequestIsUndoneAfterALossByTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		c, rival := open(t, store), open(t, queued{s.connect(), waiting}).Mutex("it")
		l := c.Mutex("it", lease.WithFixedTTL(5*time.Second))
		o, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, rival, b)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(o) }()
		synctest.Wait()
		store.late(4900 * time.Millisecond)
		require.NoError(t, rival.UnlockContext(b))
		require.NoError(t, <-got)
		time.Sleep(4850 * time.Millisecond) // its time here is over
		s.evict("it")
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		require.NotEmpty(t, s.holder("it"), "the straggler has it")
		time.Sleep(time.Second)
		require.Empty(t, s.holder("it"))
		require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
	})
}

func TestALateRequestIsUndoneAfterACancelledSuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		l, rival := open(t, store).Mutex("it"), open(t, queued{s.connect(), waiting}).Mutex("it")
		b := as(locks.NewOwner())
		hold(t, rival, b)
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		store.late(10 * time.Second)
		store.set(func(c *client) { c.delay["enqueue"] = 40 * time.Millisecond })
		require.NoError(t, rival.UnlockContext(b))
		synctest.Wait()
		for s.holder("it") == "" { // the third request has the lock, and its answer is on its way
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		time.Sleep(9 * time.Second)
		require.Empty(t, s.holder("it"))
		time.Sleep(2*time.Second + term/5)
		require.Empty(t, s.holder("it"), "the straggler took it, and it was undone")
	})
}

// The second request of a waiter is carried out after 2 s. The third is carried out after 10 s, and
// answered after 20 s. The waiter gives up before.
func TestAnEarlierLateRequestEndsNoUndoing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		l, rival := open(t, store).Mutex("it"), open(t, queued{s.connect(), waiting}).Mutex("it")
		b := as(locks.NewOwner())
		hold(t, rival, b)
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		asked := len(store.asked())
		store.late(2 * time.Second)
		store.set(func(c *client) { c.delay["enqueue"] = 20 * time.Second })
		require.NoError(t, rival.UnlockContext(b)) // which wakes the waiter
		for len(store.asked()) < asked+2 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		store.set(func(c *client) { c.delay["enqueue"] = 0 }) // of all requests but the third
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		time.Sleep(2 * time.Second)
		require.NotEmpty(t, s.holder("it"), "the second request has it")
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"))
		time.Sleep(8*time.Second - term/5)
		require.NotEmpty(t, s.holder("it"), "the third request has it")
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"), "before its answer")
	})
}

func TestARequestInDoubtGivesItsNameToNoOther(t *testing.T) {
	for _, by := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second} {
		bubble(t, func(t *testing.T, s *server) {
			store := &straggling{queued: queued{s.connect(), new([]string)}}
			l, rival := open(t, polled{s.connect(), store}).Mutex("it"), open(t, s.connect()).Mutex("it")
			o, b := as(locks.NewOwner()), as(locks.NewOwner())
			hold(t, rival, b)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(o) }()
			synctest.Wait()
			store.late(by)
			require.NoError(t, rival.UnlockContext(b))
			require.NoError(t, <-got)
			ids := store.asked()
			require.NotEqual(t, ids[len(ids)-2], ids[len(ids)-1])
			h, err := l.Hold(o)
			require.NoError(t, err)
			for range 20 {
				time.Sleep(term / 10)
				require.NoError(t, h.Err(), "the undoing of the former request has taken it")
				require.Equal(t, ids[len(ids)-1], s.holder("it"))
			}
			require.NoError(t, l.UnlockContext(o))
		})
	}
}

// whileRenewing runs end while an extension of the hold of l by an hour is under way, and returns
// the result of the extension.
func whileRenewing(t *testing.T, conn *client, h locks.Hold, end func()) error {
	conn.set(func(c *client) { c.delay["renew"] = 2 * time.Second })
	got := make(chan error, 1)
	go func() { got <- h.Extend(context.Background(), time.Hour) }()
	time.Sleep(1500 * time.Millisecond) // the store has carried it out, and its answer is on its way
	end()
	return <-got
}

func TestAnExtensionOfAReleasedHoldFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, o)
		err := whileRenewing(t, conn, h, func() { require.NoError(t, l.UnlockContext(o)) })
		require.ErrorIs(t, err, locks.ErrLost)
	})
}

func TestAnExtensionOfAHandedHoldFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o, next := open(t, conn).Mutex("it"), as(locks.NewOwner()), as(locks.NewOwner())
		h := hold(t, l, o)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(next) }()
		synctest.Wait()
		err := whileRenewing(t, conn, h, func() {
			require.NoError(t, l.UnlockContext(o))
			require.NoError(t, <-got)
		})
		require.ErrorIs(t, err, locks.ErrLost)
		h, holdErr := l.Hold(next)
		require.NoError(t, holdErr)
		require.NoError(t, h.Err(), "the next owner has it")
		require.NoError(t, l.UnlockContext(next))
	})
}

// halved is a store that renews the holds that it reaches, and returns an error for the others.
type halved struct {
	*client
	state sync.Mutex
	short bool            // the answer ends before the first hold that is not reached
	away  map[string]bool // names that are not reached
}

func (h *halved) reach(short bool, away ...string) {
	h.state.Lock()
	defer h.state.Unlock()
	h.short, h.away = short, make(map[string]bool)
	for _, name := range away {
		h.away[name] = true
	}
}

func (h *halved) Renew(ctx context.Context, ids []driver.HoldID, d time.Duration) (ok []bool, err error) {
	h.state.Lock()
	defer h.state.Unlock()
	for _, id := range ids {
		if h.away[id.Name] {
			if err = errNetwork; h.short {
				return ok, err
			}
			ok = append(ok, false)
			continue
		}
		one, _ := h.client.Renew(ctx, []driver.HoldID{id}, d)
		ok = append(ok, one...)
	}
	return ok, err
}

func TestAPartlyFailedRenewalLosesNoHold(t *testing.T) {
	for _, short := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *server) {
			store := &halved{client: s.connect()}
			c, a := open(t, store), as(locks.NewOwner())
			var holds []locks.Hold
			for _, name := range []string{"a", "b", "c"} {
				holds = append(holds, hold(t, c.Mutex(name), a))
			}
			for range 5 {
				store.reach(short, "b")
				time.Sleep(term / 2)
				store.reach(false)
				time.Sleep(term / 2)
				for _, h := range holds {
					require.NoError(t, h.Err(), "nobody has said that it is gone")
				}
			}
			store.reach(short, "b")
			s.evict("a")
			<-holds[0].Lost()
			<-holds[1].Lost()
			if !short { // else it may stand behind the hold that is not reached
				require.NoError(t, holds[2].Err())
			}
			store.reach(false)
		})
	}
}

// belated is a store whose acquisitions take a second, and whose first releases fail.
type belated struct {
	*client
	state sync.Mutex
	fails int
}

func (b *belated) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	b.state.Lock()
	fails := b.fails > 0
	b.fails--
	b.state.Unlock()
	if fails {
		return driver.Released{}, errNetwork
	}
	return b.client.Release(ctx, id)
}

func TestAGrantThatMeetsCloseIsGivenBack(t *testing.T) {
	for _, fails := range []int{0, 3} {
		bubble(t, func(t *testing.T, s *server) {
			conn := &belated{client: s.connect(), fails: fails}
			c, err := lease.New(conn, lease.WithTTL(term))
			require.NoError(t, err)
			conn.set(func(c *client) { c.delay["acquire"], c.delay["release"] = time.Second, 100*time.Millisecond })
			l, o := c.Mutex("it"), as(locks.NewOwner())
			got := make(chan error, 1)
			go func() { got <- l.LockContext(o) }()
			time.Sleep(700 * time.Millisecond)
			require.NotEmpty(t, s.holder("it"), "the answer is on its way")
			require.NoError(t, c.Close(t.Context()))
			require.Empty(t, s.holder("it"), "Close waits for its release")
			require.ErrorIs(t, <-got, locks.ErrClosed)
			_, err = l.Hold(o)
			require.ErrorIs(t, err, locks.ErrNotHeld)
		})
	}
}

// The second request of a waiter is carried out after 15 s. The waiter gives up while it waits.
func TestALateRequestIsUndoneAfterTheWaiterHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		store := &straggling{queued: queued{s.connect(), waiting}}
		l, rival := open(t, store).Mutex("it"), open(t, queued{s.connect(), waiting}).Mutex("it")
		b := as(locks.NewOwner())
		hold(t, rival, b)
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		store.late(10 * time.Second)
		time.Sleep(lease.DefaultPoll + time.Second)
		require.Len(t, store.asked(), 5, "two before the wait, and two after the straggler")
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		require.NoError(t, rival.UnlockContext(b))
		require.Empty(t, s.holder("it"))
		time.Sleep(9*time.Second + time.Millisecond)
		require.NotEmpty(t, s.holder("it"), "the straggler has it")
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"))
		require.Empty(t, store.queue())
	})
}

func TestAWaiterThatLeavesDuringItsRequestKeepsNoPlace(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		b := as(locks.NewOwner())
		hold(t, rival, b)
		q.set(func(c *client) { c.delay["enqueue"] = 40 * time.Millisecond })
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 30*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		require.NotEmpty(t, q.queue(), "the request was carried out after 20 ms")
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, q.queue())
		require.NoError(t, rival.UnlockContext(b))
	})
}

// failing is a store with a queue, whose requests for a place fail after 20 ms, and are carried out
// after 10 s.
type failing struct{ queued }

func (f failing) Enqueue(_ context.Context, req driver.Request) (driver.Reply, error) {
	time.AfterFunc(10*time.Second, func() { f.queued.Enqueue(context.Background(), req) })
	time.Sleep(20 * time.Millisecond)
	return driver.Reply{}, errNetwork
}

func TestARequestThatFailsAfterItsCallerHasGoneIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, failing{queued{s.connect(), new([]string)}}).Mutex("it")
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		time.Sleep(10*time.Second + time.Millisecond)
		require.NotEmpty(t, s.holder("it"), "it is carried out for nobody")
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"))
	})
}

// The request is carried out shortly before its lease would be over, and answered long after.
func TestALockThatComesTooLateIsGivenBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		conn.set(func(c *client) { c.delay["acquire"] = 2 * (term - 2*time.Second) })
		ok, err := l.TryLockContext(o)
		require.False(t, ok)
		require.ErrorContains(t, err, "after the end of the lease")
		synctest.Wait()
		require.Empty(t, s.holder("it"), "the store would keep it for four seconds more")
	})
}
