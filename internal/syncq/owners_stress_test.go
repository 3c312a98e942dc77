package syncq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inside says who is inside of a lock.
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

// In locks that are new again and again, since readers find no table at first, and are roused then as writers are.
func TestGoroutinesThatShareOwnersReadAndWriteAndLoseNothing(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
			t.Run(fmt.Sprint(procs, name), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				for range 200 {
					readAndWrite(t, policy)
				}
			})
		}
	}
}

func readAndWrite(t *testing.T, policy Policy) {
	var s Sync
	u := user{t, &s, NewCond(&s, policy), policy, &inside{writes: make(map[int64]int), reads: make(map[int64]int)}}
	require.True(t, s.TryLock(Owned(99))) // most have to wait at first
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
	require.True(t, s.LeaveWrite(99, policy))
	for began := time.Now(); ; {
		select {
		case <-done:
		case <-time.After(200 * time.Microsecond):
			if time.Since(began) > time.Minute {
				t.Fatalf("stuck: word %#x, %v wait, %v read", s.Word.Load(), s.Waiters(), s.Readers())
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if s.Revoke(policy); s.LockOwned(ctx, Owned(99), policy) {
				if policy == FIFO {
					s.WakeEarly(time.Now().UnixNano()&1<<18 == 0) // for 262 us each
				}
				u.c.Broadcast()
				s.LeaveWrite(99, policy)
			}
			cancel()
			continue
		}
		break
	}
	s.Revoke(policy)
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
	require.Zero(t, s.Holds)
	require.Empty(t, s.table().counted)
}

// user is what goroutines do with a lock.
type user struct {
	t      *testing.T
	s      *Sync
	c      *Cond
	policy Policy
	in     *inside
}

func (u user) must(ok bool, what string) {
	if !ok {
		u.t.Error(what)
	}
}

func (u user) read(ctx context.Context, o int64) {
	held, counted := u.s.ReenterRead(o)
	u.must(held == counted, "too many holds")
	if !held && (rand.IntN(3) > 0 || !u.s.TryRead(o, u.policy)) && !u.s.ReadContext(ctx, o, u.policy) {
		return
	}
	u.in.add(u.t, o, 0, 1)
	runtime.Gosched()
	if rand.IntN(6) == 0 {
		upgraded, reads := u.s.Upgrade(o)
		u.must(reads, "a shared hold was lost before its upgrade")
		if upgraded {
			u.in.add(u.t, o, 1, -1)
			u.endWrite(o)
			return
		}
	}
	u.endRead(o)
}

func (u user) endRead(o int64) {
	u.in.add(u.t, o, 0, -1)
	u.must(u.s.Unread(o, u.policy), "a shared hold was lost")
}

func (u user) write(ctx context.Context, o int64) {
	if held, _ := u.s.Reenter(o); !held {
		if u.s.ReadHolds(o) > 0 {
			return
		}
		u.s.Revoke(u.policy)
		if (rand.IntN(3) > 0 || !u.s.TryLockOwned(o)) && !u.s.LockOwned(ctx, Owned(o), u.policy) {
			return
		}
	}
	u.in.add(u.t, o, 1, 0)
	runtime.Gosched()
	if !explicit(o) { // a wait would give up the holds of others
		u.in.add(u.t, o, -1, 0)
		switch rand.IntN(6) {
		case 0:
			u.c.Signal()
		case 1:
			u.c.Wait(Owned(o))
		case 2:
			u.c.WaitFor(Owned(o), time.Duration(rand.IntN(100))*time.Microsecond)
		}
		u.in.add(u.t, o, 1, 0)
	}
	u.endWrite(o)
}

func (u user) endWrite(o int64) {
	if rand.IntN(3) == 0 {
		u.in.add(u.t, o, -1, 1)
		held, counted := u.s.DowngradeWrite(o)
		u.must(held && counted, "an exclusive hold was lost before its downgrade")
		u.endRead(o)
		return
	}
	u.in.add(u.t, o, -1, 0)
	u.must(u.s.LeaveWrite(o, u.policy), "an exclusive hold was lost")
}
