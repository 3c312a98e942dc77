package caslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// stuck is a server that answers no write of some documents, which its client renews.
type stuck struct{ *server }

func (s stuck) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if strings.HasPrefix(name, "stuck") && version != "" {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s.server.Swap(ctx, name, data, version)
}

func TestAStuckRenewalCostsNoOtherHold(t *testing.T) {
	for _, many := range []int{1, 16} { // 16 of them leave no room for others
		bubble(t, func(t *testing.T, s *server) {
			c := open(t, stuck{s})
			owner := adaptertest.Owner()
			hold := func(name string) (holds []locks.Hold) {
				for i := range many {
					l := c.Mutex(fmt.Sprint(name, i))
					require.NoError(t, l.LockContext(owner))
					h, err := l.Hold(owner)
					require.NoError(t, err)
					holds = append(holds, h)
				}
				return holds
			}
			hangs, others := hold("stuck"), hold("it")
			time.Sleep(3 * term)
			for i := range many {
				require.ErrorIs(t, hangs[i].Err(), locks.ErrLost)
				require.NoError(t, others[i].Err())
			}
		})
	}
}

// sluggish is a server that takes eight seconds for a renewal, and drops it if its context ends
// before.
type sluggish struct{ *server }

func (s sluggish) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if version != "" {
		select {
		case <-time.After(8 * time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return s.server.Swap(ctx, name, data, version)
}

func TestASingleRenewalMayTakeLonger(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, owner := open(t, sluggish{s}).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		time.Sleep(5 * term)
		require.NoError(t, h.Err())
	})
}

// stumbling is a server that fails every second write of one document.
type stumbling struct {
	*server
	writes *atomic.Int32 // a renewal goes on when the client closes
}

func (s stumbling) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if name == "it0" && s.writes.Add(1)%2 == 0 {
		return "", errNetwork
	}
	return s.server.Swap(ctx, name, data, version)
}

func TestAFailedRenewalAmongOthersIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, owner := open(t, stumbling{s, new(atomic.Int32)}), adaptertest.Owner()
		var holds []locks.Hold
		for i := range 4 {
			l := c.Mutex(fmt.Sprint("it", i))
			require.NoError(t, l.LockContext(owner))
			h, err := l.Hold(owner)
			require.NoError(t, err)
			holds = append(holds, h)
		}
		time.Sleep(20 * term)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
	})
}

func TestTheLongestExtensionIsNoOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, owner := open(t, s).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		require.NoError(t, h.Extend(owner, 1<<63-1))
		held, err := open(t, s).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
	})
}

// A proxy sends the renewal twice. Between the two, the hold is released.
func TestARenewalOfAReleasedHoldIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		r := &repeated{server: s}
		_, inner := openInner(t, r)
		reply, err := inner.Acquire(t.Context(), request1)
		require.NoError(t, err)
		require.True(t, reply.Held)
		_, other := openInner(t, s)
		r.between = func() {
			released, err := other.Release(t.Context(), request1.HoldID)
			require.NoError(t, err)
			require.True(t, released.Held)
		}
		renewed, err := inner.Renew(t.Context(), []driver.HoldID{request1.HoldID}, term)
		require.NoError(t, err)
		require.Equal(t, []bool{false}, renewed)
	})
}

var errDeleted = driver.Mark(errors.New("the bucket was deleted"), driver.ErrRefused, classes.ErrGone)

func TestAHoldEndsWhenAllLocksAreGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		l, owner := open(t, c).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		c.set(func() { c.loadErr, c.swapErr = errDeleted, errDeleted })
		time.Sleep(term / 2)
		require.ErrorIs(t, h.Err(), locks.ErrLost, "the first renewal tells")
	})
}

func TestAReleaseInDoubtEndsWhenAllLocksAreGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect(lostReply)
		_, inner := openInner(t, c)
		_, err := inner.Acquire(t.Context(), request1)
		require.ErrorIs(t, err, errNetwork)
		c.set(func() { c.loadErr, c.swapErr = errDeleted, errDeleted })
		r, err := inner.Release(t.Context(), request1.HoldID)
		require.NoError(t, err)
		require.False(t, r.Held)
	})
}

// A write finds another version. By then, a third of the lease is over.
func TestAnAnswerThatIsLateHasNoWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		acquire(t, open(t, s).Semaphore("it", 2), 1)
		c := s.connect()
		c.swapErr = caslock.ErrConflict
		inner := openSemaphores(t, slow{c})
		r, err := inner.Acquire(t.Context(), driver.Request{
			HoldID: request1.HoldID, TTL: 3 * time.Second, Permits: 1, Size: 2,
		})
		require.NoError(t, err)
		require.Equal(t, driver.Reply{Listening: true}, r)
	})
}
