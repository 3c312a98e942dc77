package syncq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
)

// inside says which owners are inside of a lock.
type inside struct {
	sync.Mutex
	writes, reads map[int64]int // goroutines by owner
}

// add counts more or fewer goroutines of o, and checks that owners exclude each other.
func (in *inside) add(t *testing.T, o int64, writes, reads int) {
	in.Lock()
	defer in.Unlock()
	count := func(m map[int64]int, by int) {
		if m[o] += by; m[o] == 0 {
			delete(m, o)
		}
	}
	count(in.writes, writes)
	count(in.reads, reads)
	for w := range in.writes {
		for o := range in.writes {
			if o != w {
				t.Errorf("%d and %d write", o, w)
			}
		}
		for o := range in.reads {
			if o != w {
				t.Errorf("%d reads while %d writes", o, w)
			}
		}
	}
}

// The locks are new again and again, since readers find no table at first.
func TestGoroutinesThatShareOwnersLoseNothing(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		for name, policy := range map[string]syncq.Policy{"NonFair": syncq.NonFair, "FIFO": syncq.FIFO} {
			t.Run(fmt.Sprint(n, name), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
				for range 200 {
					readAndWrite(t, policy)
				}
			})
		}
	}
}

func readAndWrite(t *testing.T, policy syncq.Policy) {
	s := syncq.NewReadWrite(policy)
	in := &inside{writes: make(map[int64]int), reads: make(map[int64]int)}
	u := user{t, &s, s.NewCond(), in}
	require.True(t, s.TryLock(syncq.Owned(99))) // most have to wait at first
	var wg sync.WaitGroup
	for g := range 14 {
		o := -int64(g%3) - 1
		if g >= 10 {
			o = int64(g)
		}
		wg.Go(func() {
			for range 6 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(300))*time.Microsecond)
				if rand.IntN(3) == 0 {
					u.write(ctx, o)
				} else {
					if rand.IntN(3) == 0 {
						u.read(context.Background(), o)
					} else {
						u.read(ctx, o)
					}
				}
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for range 1000 {
		if s.Len() > 5 {
			break
		}
		runtime.Gosched()
	}
	require.True(t, s.Release(99))
	for began := time.Now(); ; {
		select {
		case <-done:
		case <-time.After(200 * time.Microsecond):
			if time.Since(began) > time.Minute {
				t.Fatalf("stuck: word %#x, %v wait, %v read", s.Word.Load(), s.Waiters(), shares.Readers(&s))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if s.LockContext(ctx, syncq.Owned(99)) == syncq.Acquired {
				u.c.Broadcast()
				s.Release(99)
			}
			cancel()
			continue
		}
		break
	}
	s.Revoke()
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
	require.Zero(t, s.Holds)
	require.Empty(t, shares.Readers(&s))
}

// user has the operations of goroutines on a lock.
type user struct {
	t  *testing.T
	s  *syncq.ReadWrite
	c  *syncq.Cond
	in *inside
}

func (u user) must(ok bool, what string) {
	if !ok {
		u.t.Error(what)
	}
}

// acquired reports whether the caller has its hold. Other owners, a limit, or its owner's reads
// may be in the way.
func (u user) acquired(out syncq.Outcome) bool {
	expected := out == syncq.Acquired || out == syncq.Ended || out == syncq.Busy || out == syncq.Upgrade
	u.must(expected, fmt.Sprint("outcome ", out))
	return out == syncq.Acquired
}

func (u user) read(ctx context.Context, o int64) {
	if !u.beginRead(ctx, o) {
		return
	}
	u.in.add(u.t, o, 0, 1)
	runtime.Gosched()
	if rand.IntN(6) == 0 {
		var out syncq.Outcome
		if o < 0 {
			out = shares.Of(&u.s.Sync).Upgrade(u.s, o)
		} else {
			out = u.s.Upgrade(o)
		}
		u.must(out == syncq.Acquired || out == syncq.Busy, "a shared hold was lost before its upgrade")
		if out == syncq.Acquired {
			u.in.add(u.t, o, 1, -1)
			u.endWrite(o)
			return
		}
	}
	u.endRead(o)
}

func (u user) beginRead(ctx context.Context, o int64) bool {
	try := rand.IntN(3) == 0
	switch {
	case o < 0 && try && u.acquired(shares.Of(&u.s.Sync).TryLock(o, true)):
		return true
	case o < 0:
		return u.acquired(shares.Of(&u.s.Sync).Lock(ctx, syncq.Owned(o), true))
	}
	return try && u.s.TryRead(o) || u.acquired(u.s.ReadContext(ctx, syncq.Owned(o)))
}

func (u user) endRead(o int64) {
	u.in.add(u.t, o, 0, -1)
	if o < 0 {
		u.must(shares.Of(&u.s.Sync).UnlockShared(o) == syncq.Acquired, "a shared hold was lost")
		return
	}
	u.must(u.s.ReleaseRead(o), "a shared hold was lost")
}

func (u user) write(ctx context.Context, o int64) {
	if !u.beginWrite(ctx, o) {
		return
	}
	u.in.add(u.t, o, 1, 0)
	runtime.Gosched()
	if o > 0 { // TestWaitsForASignalLoseNoSharedHold has these
		u.in.add(u.t, o, -1, 0)
		switch rand.IntN(6) {
		case 0:
			u.c.Signal()
		case 1:
			u.c.Wait(syncq.Owned(o), nil)
		case 2:
			u.c.WaitFor(syncq.Owned(o), time.Duration(rand.IntN(100))*time.Microsecond)
		}
		u.in.add(u.t, o, 1, 0)
	}
	u.endWrite(o)
}

func (u user) beginWrite(ctx context.Context, o int64) bool {
	try := rand.IntN(3) == 0
	switch {
	case o < 0 && try && u.acquired(shares.Of(&u.s.Sync).TryLock(o, false)):
		return true
	case o < 0:
		return u.acquired(shares.Of(&u.s.Sync).Lock(ctx, syncq.Owned(o), false))
	case u.s.TryLockUnread(syncq.Owned(o)) || try && u.s.TryLock(syncq.Owned(o)):
		return true
	}
	return u.acquired(u.s.LockContext(ctx, syncq.Owned(o)))
}

func (u user) endWrite(o int64) {
	if rand.IntN(3) == 0 {
		u.in.add(u.t, o, -1, 1)
		var out syncq.Outcome
		if o < 0 {
			out = shares.Of(&u.s.Sync).Downgrade(o)
		} else {
			out = u.s.Downgrade(o)
		}
		u.must(out == syncq.Acquired, "an exclusive hold was lost before its downgrade")
		u.endRead(o)
		return
	}
	u.in.add(u.t, o, -1, 0)
	if o < 0 {
		u.must(shares.Of(&u.s.Sync).Unlock(o) == syncq.Acquired, "an exclusive hold was lost")
		return
	}
	u.must(u.s.Release(o), "an exclusive hold was lost")
}
