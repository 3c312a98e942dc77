package s3lock_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/s3lock"
)

// wrongClock is the difference between the clock of a fake and the clock of its clients.
type wrongClock struct {
	ahead   atomic.Int64 // a time.Duration
	undated atomic.Bool  // the answers lack the time, which a proxy has removed
}

// setClock makes f refuse requests like S3: if their time differs from its own by 15 minutes.
func setClock(f *fake) *wrongClock {
	c := new(wrongClock)
	f.Before = func(r *http.Request) (*http.Response, error) {
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || c.now().Sub(signed).Abs() > 15*time.Minute {
			return c.dated(refusal(http.StatusForbidden, "RequestTimeTooSkewed")), nil
		}
		return nil, nil
	}
	f.After = func(_ *http.Request, answer *http.Response) (*http.Response, error) { return c.dated(answer), nil }
	return c
}

func (c *wrongClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

func (c *wrongClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *wrongClock) dated(answer *http.Response) *http.Response {
	if !c.undated.Load() {
		answer.Header.Set("Date", c.now().UTC().Format(http.TimeFormat))
	}
	return answer
}

func TestAWrongClockCostsOneRefusal(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		clock := setClock(f)
		l, owner := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it"), adaptertest.Owner()
		clock.set(time.Hour)
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		clock.set(-time.Hour)
		time.Sleep(2 * lease.DefaultLease)
		require.NoError(t, h.Err(), "it was renewed")
		clock.set(time.Hour)
		began := time.Now()
		require.NoError(t, l.UnlockContext(owner))
		require.Less(t, time.Since(began), lease.DefaultReleaseTimeout)
	})
}

// refuseRelease acquires a lock, and releases it when the store's clock is an hour away. The
// answers lack the store's time, so the client cannot correct its own.
func refuseRelease(t *testing.T, f *fake) *wrongClock {
	clock := setClock(f)
	clock.undated.Store(true)
	l, owner := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	clock.set(time.Hour)
	require.ErrorIs(t, l.UnlockContext(owner), lease.ErrLogin)
	return clock
}

func TestAReleaseIsRepeatedUntilTheClockIsRight(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		clock := refuseRelease(t, f)
		time.Sleep(lease.DefaultLease / 3)
		clock.set(0)
		time.Sleep(lease.DefaultLease / 3)
		held, err := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestAReleaseByAWrongClockEndsWithItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		clock := refuseRelease(t, f)
		time.Sleep(2 * lease.DefaultLease)
		f.Counts()
		time.Sleep(time.Hour)
		reads, writes, _ := f.Counts()
		require.Zero(t, reads+writes)
		clock.set(0)
	})
}

// S3 names a wrong clock by a code of its own.
func TestAMissingRightIsNoWrongClock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		clock := setClock(f)
		clock.set(time.Hour)
		f.Before = func(*http.Request) (*http.Response, error) {
			return clock.dated(refusal(http.StatusForbidden, "AccessDenied")), nil
		}
		err := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it").LockContext(adaptertest.Owner())
		require.ErrorIs(t, err, lease.ErrRefused)
		require.NotErrorIs(t, err, lease.ErrUnavailable)
		synctest.Wait()
		reads, writes, _ := f.Counts()
		require.Equal(t, 1, reads+writes)
	})
}
