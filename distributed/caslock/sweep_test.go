package caslock_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// listed is a server that can list and delete.
type listed struct{ *server }

func (s listed) Names(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.docs)), nil
}

func (s listed) Delete(_ context.Context, name, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == "" || s.version(name) != version {
		return caslock.ErrConflict
	}
	delete(s.docs, name)
	return nil
}

func TestNamesAreThoseOfDocuments(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, listed{s})
		adaptertest.Pair(t, c.Mutex("orders"))
		require.NoError(t, c.Mutex("bills").LockContext(adaptertest.Owner()))
		for pattern, want := range map[string][]string{"": {"bills", "orders"}, "o*": {"orders"}, "x": nil} {
			names, err := c.Names(context.Background(), pattern)
			require.NoError(t, err)
			require.Equal(t, want, names)
		}
		_, err := c.Names(context.Background(), "[")
		require.ErrorContains(t, err, "caslock: list names: syntax error")
		_, err = c.Names(nil, "") //nolint:staticcheck // refused
		require.ErrorIs(t, err, locks.ErrNilContext)
	})
}

// lateList is a server whose answer comes after the time limit of a request.
type lateList struct{ listed }

func (lateList) Names(context.Context) ([]string, error) { return nil, context.DeadlineExceeded }

func TestALateListIsNoEndOfTheCallersContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, lateList{listed{s}})
		_, err := c.Names(context.Background(), "")
		require.EqualError(t, err, "caslock: list names: no answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.Sweep(context.Background(), "", time.Hour)
		require.EqualError(t, err, "caslock: sweep: no answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestSweepDeletesLocksThatAreLongUnused(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, listed{s})
		adaptertest.Pair(t, c.Mutex("old"))
		require.NoError(t, c.Mutex("held").LockContext(adaptertest.Owner()))
		die(t, s, "dead")
		s.put("photograph", "of a lock")
		time.Sleep(time.Hour)
		adaptertest.Pair(t, c.Mutex("new"))
		swept, err := c.Sweep(context.Background(), "", time.Hour)
		require.NoError(t, err)
		require.Equal(t, []string{"old"}, swept)
		names, err := c.Names(context.Background(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"dead", "held", "new", "photograph"}, names)
	})
}

// timeless is a Format without the time of a write.
type timeless struct{ caslock.Format }

func (f timeless) Decode(data []byte) (caslock.Record, error) {
	r, err := f.Format.Decode(data)
	r.Written = time.Time{}
	return r, err
}

func TestSweepKeepsDocumentsWithoutATime(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, listed{s}, caslock.WithFormat(timeless{caslock.JSON}))
		adaptertest.Pair(t, open(t, s).Mutex("it"))
		swept, err := c.Sweep(context.Background(), "", 0)
		require.NoError(t, err)
		require.Empty(t, swept)
		require.NotEmpty(t, s.data("it"))
	})
}

func TestASweptLockBeginsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, listed{s})
		l := c.Mutex("it")
		adaptertest.Pair(t, l)
		adaptertest.Pair(t, l)
		_, err := c.Sweep(context.Background(), "it", 0)
		require.NoError(t, err)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
	})
}

func TestSweepNeedsAStoreThatDeletes(t *testing.T) {
	c := open(t, newServer())
	_, err := c.Sweep(context.Background(), "", 0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = c.Names(context.Background(), "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// contested is a listed server on which another client is always faster with one document.
type contested struct{ listed }

func (s contested) Delete(ctx context.Context, name, version string) error {
	if name == "a" {
		return caslock.ErrConflict
	}
	return s.listed.Delete(ctx, name, version)
}

func TestSweepLeavesALockThatIsUsedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, contested{listed{s}})
		adaptertest.Pair(t, c.Mutex("a"))
		adaptertest.Pair(t, c.Mutex("b"))
		swept, err := c.Sweep(context.Background(), "", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, swept)
	})
}

// choosy is a listed server of which some documents have names that no lock can have.
type choosy struct{ listed }

func (choosy) CheckName(name string) error { return picky{}.CheckName(name) }

func TestSweepLeavesNamesThatNoLockCanHave(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		adaptertest.Pair(t, open(t, s).Mutex("a b"))
		adaptertest.Pair(t, open(t, s).Mutex("c"))
		swept, err := open(t, choosy{listed{s}}).Sweep(context.Background(), "", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"c"}, swept)
	})
}
