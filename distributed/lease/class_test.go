package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// moody is a store that refuses each request with the error of the moment, if there is one.
type moody struct {
	*client
	waiting *[]string // guarded by the server's mutex
	refusal error     // guarded by client.mu
	left    int       // refused requests to leave, guarded by client.mu
}

var _ driver.Queue = (*moody)(nil)

func (m *moody) refuse(err error) { m.set(func(*client) { m.refusal = err }) }

func (m *moody) answer(kind string) (err error) {
	m.set(func(*client) {
		err = m.refusal
		if err != nil && kind == "leave" {
			m.left++
		}
	})
	return err
}

func (m *moody) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := m.answer("acquire"); err != nil {
		return driver.Reply{}, err
	}
	return m.client.Acquire(ctx, req)
}

func (m *moody) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := m.answer("enqueue"); err != nil {
		return driver.Reply{}, err
	}
	return queued{m.client, m.waiting}.Enqueue(ctx, req)
}

func (m *moody) Leave(ctx context.Context, id driver.HoldID) error {
	if err := m.answer("leave"); err != nil {
		return err
	}
	return queued{m.client, m.waiting}.Leave(ctx, id)
}

func (m *moody) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	if err := m.answer("renew"); err != nil {
		return nil, err
	}
	return m.client.Renew(ctx, holds, d)
}

func (m *moody) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if err := m.answer("release"); err != nil {
		return driver.Released{}, err
	}
	return m.client.Release(ctx, id)
}

// classes are the classes of errors. Each one says whether a first request and a waiter go on after
// such an error.
var classes = map[string]struct {
	err         error
	first, wait bool // goes on
}{
	"the request":               {driver.Mark(errors.New("NOPERM"), driver.ErrRefused), false, false},
	"the connection":            {driver.Mark(errors.New("WRONGPASS"), driver.ErrRefused, driver.ErrLogin), false, true},
	"the connection, in doubt":  {driver.Mark(errors.New("401"), driver.ErrLogin), false, true},
	"the moment":                {driver.Mark(errors.New("OOM"), driver.ErrRefused, driver.ErrUnavailable), true, true},
	"the moment, in doubt":      {driver.Mark(errors.New("503"), driver.ErrUnavailable), true, true},
	"no connection was made":    {driver.Mark(errNetwork, unreachable...), false, true},
	"none of these, in doubt":   {errNetwork, false, true},
	"the connection, by a pool": {driver.Mark(errors.New("login"), append(unreachable, driver.ErrLogin)...), false, true},
}

// inEachMood runs f for each class of errors, with a client of a store that can refuse.
func inEachMood(t *testing.T, f func(t *testing.T, s *server, m *moody, l, rival *lease.Mutex, class string)) {
	for class := range classes {
		t.Run(class, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				m := &moody{client: s.connect(), waiting: new([]string)}
				rival := open(t, queued{s.connect(), m.waiting}).Mutex("it")
				f(t, s, m, open(t, m).Mutex("it"), rival, class)
			})
		})
	}
}

func TestTheClassOfAnErrorDecidesAboutAFirstRequest(t *testing.T) {
	inEachMood(t, func(t *testing.T, _ *server, m *moody, l, _ *lease.Mutex, class string) {
		m.refuse(classes[class].err)
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Minute)
		defer cancel()
		began := time.Now()
		err := l.LockContext(ctx)
		require.ErrorContains(t, err, classes[class].err.Error())
		require.Equal(t, classes[class].first, time.Since(began) == time.Minute, "%v", err)
	})
}

func TestTheClassOfAnErrorDecidesAboutAWait(t *testing.T) {
	inEachMood(t, func(t *testing.T, _ *server, m *moody, l, rival *lease.Mutex, class string) {
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, rival, a)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		synctest.Wait()
		m.refuse(classes[class].err)
		time.Sleep(term)
		m.refuse(nil)
		require.NoError(t, rival.UnlockContext(a))
		err := <-got
		require.Equal(t, classes[class].wait, err == nil, "%v", err)
		if err == nil {
			require.NoError(t, l.UnlockContext(b))
		}
	})
}

func TestNoErrorOfARenewalIsALoss(t *testing.T) {
	inEachMood(t, func(t *testing.T, _ *server, m *moody, l, _ *lease.Mutex, class string) {
		a := as(locks.NewOwner())
		h := hold(t, l, a)
		for range 5 {
			time.Sleep(term / 5)
			m.refuse(classes[class].err)
			time.Sleep(term / 2)
			m.refuse(nil)
		}
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestARefusalOfAReleaseCostsOthersItsOwnTime(t *testing.T) {
	inEachMood(t, func(t *testing.T, s *server, m *moody, l, rival *lease.Mutex, class string) {
		for _, outage := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
			a, b := as(locks.NewOwner()), as(locks.NewOwner())
			hold(t, l, a)
			got := make(chan error, 1)
			go func() { got <- rival.LockContext(b) }()
			synctest.Wait()
			m.refuse(classes[class].err)
			began := time.Now()
			time.AfterFunc(outage, func() { m.refuse(nil) })
			err := l.UnlockContext(a)
			if refused := errors.Is(classes[class].err, driver.ErrRefused); refused &&
				!errors.Is(classes[class].err, driver.ErrUnavailable) {
				require.Zero(t, time.Since(began), "the caller is answered at once")
				require.ErrorIs(t, err, locks.ErrLost)
				require.ErrorContains(t, err, classes[class].err.Error())
			}
			require.NoError(t, <-got)
			require.LessOrEqual(t, time.Since(began), 2*outage+lease.DefaultReleaseTimeout/10)
			require.NoError(t, rival.UnlockContext(b))
			time.Sleep(time.Minute)
		}
	})
}

func TestARefusalOfALeaveLeavesNoPlace(t *testing.T) {
	inEachMood(t, func(t *testing.T, _ *server, m *moody, l, rival *lease.Mutex, class string) {
		a := as(locks.NewOwner())
		hold(t, rival, a)
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		require.Len(t, queued{m.client, m.waiting}.queue(), 1)
		m.refuse(classes[class].err)
		time.AfterFunc(500*time.Millisecond, func() { m.refuse(nil) })
		cancel()
		require.Error(t, <-got)
		time.Sleep(2 * time.Second)
		require.Empty(t, queued{m.client, m.waiting}.queue())
		require.Less(t, m.left, 30)
		require.NoError(t, rival.UnlockContext(a))
	})
}

// muddled is a store whose next request for a lock is carried out a second later, and gets no
// answer.
type muddled struct{ *moody }

func (m muddled) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return m.Acquire(ctx, req)
}

func (m muddled) Acquire(_ context.Context, req driver.Request) (driver.Reply, error) {
	time.AfterFunc(time.Second, func() { m.client.Acquire(context.Background(), req) })
	return driver.Reply{}, errNetwork
}

func TestARefusalEndsNoUndoing(t *testing.T) {
	inEachMood(t, func(t *testing.T, s *server, m *moody, _, _ *lease.Mutex, class string) {
		l := open(t, muddled{m}).Mutex("it")
		time.AfterFunc(time.Millisecond, func() { m.refuse(classes[class].err) })
		ok, err := l.TryLockContext(as(locks.NewOwner()))
		require.False(t, ok)
		require.ErrorIs(t, err, errNetwork)
		time.Sleep(time.Second + time.Millisecond)
		assert.NotEmpty(t, s.holder("it"), "the late request is carried out")
		m.refuse(nil)
		time.Sleep(term / 5)
		require.Empty(t, s.holder("it"))
	})
}
