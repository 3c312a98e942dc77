package locks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
)

// shared is how one process sees a lock of a store: by a key of its own, and over a network.
type shared struct {
	*fakelock.Lock
	key    string
	delay  time.Duration // of a request, in each direction
	client int
}

func (s *shared) LockKey() string { return s.key }

// SameLock knows its own client's locks. Of another client's lock it asks who holds that.
func (s *shared) SameLock(ctx context.Context, other locks.TryLocker) (bool, error) {
	o, ok := other.(*shared)
	return ok && s.Lock == o.Lock && (s.client == o.client || ctx.Err() == nil && s.Count() > 0), nil
}

func (s *shared) LockContext(ctx context.Context) error {
	s.cross()
	defer s.cross()
	return s.Lock.LockContext(ctx)
}

func (s *shared) TryLockContext(ctx context.Context) (bool, error) {
	s.cross()
	defer s.cross()
	return s.Lock.TryLockContext(ctx)
}

func (s *shared) UnlockContext(ctx context.Context) error {
	s.cross()
	defer s.cross()
	return s.Lock.UnlockContext(ctx)
}

// cross is the way of a message. No two messages take exactly as long.
func (s *shared) cross() {
	if s.delay > 0 {
		time.Sleep(s.delay + rand.N(s.delay/100))
	}
}

// compete lets each process acquire its Multi so often, and returns when all have.
func compete(t *testing.T, rounds int, processes ...locks.TryLocker) {
	var wg sync.WaitGroup
	ctx := t.Context()
	errs := make([]error, len(processes))
	inside := 0
	for i, m := range processes {
		wg.Go(func() {
			for range rounds {
				errs[i] = errors.Join(errs[i], locks.Do(ctx, m, func(context.Context) error {
					inside++
					time.Sleep(time.Millisecond)
					return nil
				}))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, rounds*len(processes), inside)
}

// Two processes name two servers so that the texts order the servers differently, as localhost and
// 127.0.0.1 do.
func TestMultiOfOneNameOnTwoServersDoesNotDeadlock(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &fakelock.Lock{}, &fakelock.Lock{}
			on := func(l *fakelock.Lock, key string) locks.TryLocker {
				return &shared{Lock: l, key: key, delay: delay}
			}
			compete(t, 50,
				locks.Multi(on(a, "orders\x00redis 1"), on(b, "orders\x00redis 2")),
				locks.Multi(on(a, "orders\x00redis 9"), on(b, "orders\x00redis 2")),
				locks.Multi(on(a, "orders"), on(b, "orders")),
			)
		})
	}
}

func TestTriesOverASlowNetworkDoNotCollideForEver(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			a, b := &fakelock.Lock{}, &fakelock.Lock{}
			const delay = 50 * time.Millisecond
			on := func(l *fakelock.Lock, key string) locks.TryLocker {
				return &shared{Lock: l, key: key, delay: delay}
			}
			began := time.Now()
			compete(t, 1,
				locks.Multi(on(a, "orders\x001"), on(b, "orders\x002")),
				locks.Multi(on(a, "orders\x002"), on(b, "orders\x001")),
			)
			require.Less(t, time.Since(began), 200*delay)
		})
	}
}

func TestMultiOfKeysThatBeginWithZeroHasNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fakelock.Lock{}, &fakelock.Lock{}
		compete(t, 50, // two paths lead to one file
			locks.Multi(&shared{Lock: a, key: "\x00/a"}, &shared{Lock: b, key: "\x00/b"}),
			locks.Multi(&shared{Lock: a, key: "\x00/link"}, &shared{Lock: b, key: "\x00/b"}),
		)
	})
	m := locks.Multi(&shared{Lock: &fakelock.Lock{}, key: "\x00/a\x00shared"})
	require.Equal(t, `locks.Multi[member 0 (*locks_test.shared "/a")]`, m.(interface{ String() string }).String())
}

// bare is a lock of a store, and lacks a key.
type bare struct{ *fakelock.Leased }

func TestMultiOfLeasedLocksWithoutKeysHasNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakelock.NewLeased(""), fakelock.NewLeased("")
		first := []*bare{{a}, {b}} // their addresses differ in each process
		second := []*bare{{b}, {a}}
		compete(t, 50, locks.Multi(first[0], first[1]), locks.Multi(second[0], second[1]))
	})
}

func TestMultiOfOneNameBeginsWithOneMember(t *testing.T) {
	for range 20 {
		a, b := &fakelock.Lock{}, &fakelock.Lock{}
		var log []string
		a.LockErr = func() error { log = append(log, "a"); return nil }
		b.TryErr = func() error { log = append(log, "b"); return nil }
		m := locks.Multi(&shared{Lock: b, key: "it\x002"}, &shared{Lock: a, key: "it\x001"})
		require.NoError(t, m.LockContext(ctx))
		require.Equal(t, []string{"a", "b"}, log)
	}
}

func TestLocksOfOneKeyAreOneIfTheySaySo(t *testing.T) {
	l := &fakelock.Lock{}
	one, same := &shared{Lock: l, key: "it\x001"}, &shared{Lock: l, key: "it\x001"}
	m := locks.Multi(one, same)
	require.NoError(t, m.LockContext(ctx))
	require.Equal(t, 1, l.Count())
	require.NoError(t, m.UnlockContext(ctx))

	other := &fakelock.Lock{}
	m = locks.Multi(one, &shared{Lock: other, key: "it\x001"})
	require.NoError(t, m.LockContext(ctx))
	require.Equal(t, 1, l.Count())
	require.Equal(t, 1, other.Count(), "another server of the same address")
	require.NoError(t, m.UnlockContext(ctx))
}

func TestMultiOfTwoClientsOfOneStoreIsADeadlock(t *testing.T) {
	l := &fakelock.Lock{Owned: true}
	m := locks.Multi(&shared{Lock: l, key: "it\x001"}, &shared{Lock: l, key: "it\x001", client: 2})
	err := m.LockContext(ctx)
	require.ErrorIs(t, err, locks.ErrDeadlock)
	require.ErrorContains(t, err, `locks: Multi: try member 1 (*locks_test.shared "it"): deadlock: `+
		`it is the same lock as member 0 (*locks_test.shared "it"), which is held`)
	require.Zero(t, l.Count())

	m = locks.Multi(&shared{Lock: l, key: "it\x001"}, &shared{Lock: l, key: "it\x001", client: 2})
	ok, err := m.TryLockContext(ctx)
	require.False(t, ok)
	require.ErrorIs(t, err, locks.ErrDeadlock)
	require.Zero(t, l.Count())
}

func TestMultiWaitsForAMemberOfItsNameThatOthersHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fakelock.Lock{Owned: true}, &fakelock.Lock{Owned: true}
		m := locks.Multi(&shared{Lock: a, key: "it\x001"}, &shared{Lock: b, key: "it\x002"})
		other := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, b.LockContext(other))
		time.AfterFunc(time.Minute, func() { _ = b.UnlockContext(other) })
		require.NoError(t, m.LockContext(t.Context()))
		require.NoError(t, m.UnlockContext(t.Context()))
	})
}
