package syncq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
)

// policies runs f with a lock of each policy.
func policies(t *testing.T, f func(t *testing.T, s *syncq.ReadWrite)) {
	for _, p := range []syncq.Policy{syncq.NonFair, syncq.FIFO} {
		t.Run(fmt.Sprint("FIFO=", p), func(t *testing.T) {
			s := syncq.NewReadWrite(p)
			f(t, &s)
		})
	}
}

// procs runs f with 1, 2 and 8 processors.
func procs(t *testing.T, f func(t *testing.T)) {
	for _, n := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", n), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			f(t)
		})
	}
}

// guarded has the variables that the lock under test guards. They are plain, so that the race
// detector watches them.
type guarded struct {
	writes, mirror int
	readers        atomic.Int32
}

func (g *guarded) write(t *testing.T) {
	if g.readers.Load() != 0 {
		t.Error("a reader is inside together with the writer")
	}
	g.writes++
	if rand.IntN(8) == 0 {
		runtime.Gosched()
	}
	g.mirror++
	if g.writes != g.mirror {
		t.Error("two writers are inside")
	}
}

func (g *guarded) read(t *testing.T) {
	g.readers.Add(1)
	a := g.writes
	if rand.IntN(8) == 0 {
		runtime.Gosched()
	}
	if a != g.mirror {
		t.Error("a writer is inside together with a reader")
	}
	g.readers.Add(-1)
}

func TestAllWaitsKeepExclusionAndLoseNobody(t *testing.T) {
	procs(t, func(t *testing.T) {
		policies(t, func(t *testing.T, s *syncq.ReadWrite) {
			const goroutines, rounds = 12, 400
			var (
				c    = syncq.NewCond(&s.Sync, s.Policy())
				g    guarded
				done = make(chan struct{})
				wg   sync.WaitGroup

				signals, woken int // guarded by s
			)
			for i := range goroutines {
				wg.Add(1)
				go func() {
					defer wg.Done()
					who := syncq.Owned(int64(i + 1))
					r := rand.New(rand.NewPCG(uint64(i), 1))
					for range rounds {
						short := time.Duration(r.IntN(60)) * time.Microsecond
						held := true
						switch r.IntN(11) {
						case 0, 1:
							s.Lock(who)
						case 2:
							held = s.LockFor(who, short)
						case 3:
							ctx, cancel := context.WithTimeout(context.Background(), short)
							held = s.LockContext(ctx, who) == syncq.Acquired
							cancel()
						case 4:
							held = s.TryLock(who) || s.TryLockUnread(who)
						case 5:
							s.LockShared(syncq.Owned(int64(i)))
							g.read(t)
							s.Unlock()
							continue
						case 6:
							if s.LockSharedFor(syncq.Owned(int64(i)), short) {
								g.read(t)
								s.Unlock()
							}
							continue
						case 7:
							if s.TryLockShared() {
								g.read(t)
								s.Unlock()
							}
							continue
						case 8:
							s.Lock(who)
							g.write(t)
							s.Downgrade(int64(i + 1))
							g.read(t)
							if !s.ReleaseRead(int64(i + 1)) {
								t.Error("a shared hold was lost")
							}
							continue
						case 9:
							if s.ReadFor(syncq.Owned(int64(i+1)), short) {
								g.read(t)
								if s.Upgrade(int64(i+1)) == syncq.Acquired {
									g.write(t)
									s.Release(int64(i + 1))
								} else {
									s.ReleaseRead(int64(i + 1))
								}
							}
							continue
						case 10:
							s.Read(syncq.Owned(int64(i + 1)))
							g.read(t)
							s.ReleaseRead(int64(i + 1))
							continue
						}
						if !held {
							continue
						}
						g.write(t)
						switch r.IntN(6) {
						case 0:
							if c.Signal() {
								signals++
							}
						case 1:
							signals += c.Broadcast()
						case 2:
							if c.WaitFor(who, short) {
								woken++
							}
							g.write(t)
						case 3:
							ctx, cancel := context.WithTimeout(context.Background(), short)
							if c.WaitContext(ctx, who) {
								woken++
							}
							cancel()
							g.write(t)
						}
						s.Unlock()
					}
				}()
			}
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(60 * time.Second):
				t.Fatalf("stuck: %v", s.Waiters())
			}
			s.Revoke()
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load())
			require.Equal(t, signals, woken, "every signal that found a waiter ended a wait normally")
			require.Zero(t, c.Len())
		})
	})
}

func TestEachSignalSentEndsOneWait(t *testing.T) {
	policies(t, func(t *testing.T, s *syncq.ReadWrite) {
		const waiters, rounds = 8, 300
		var (
			c              = syncq.NewCond(&s.Sync, s.Policy())
			signals, woken int
			left           atomic.Int32
			wg             sync.WaitGroup
		)
		left.Store(waiters)
		for i := range waiters {
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer left.Add(-1)
				who := syncq.Owned(int64(i + 1))
				for j := range rounds {
					s.Lock(who)
					if c.WaitFor(who, time.Duration((i+j)%20)*time.Microsecond) {
						woken++
					}
					s.Unlock()
				}
			}()
		}
		me := syncq.Owned(100)
		for left.Load() > 0 {
			s.Lock(me)
			if c.Signal() {
				signals++
			}
			s.Unlock()
		}
		wg.Wait()
		require.Equal(t, signals, woken)
		require.Zero(t, s.Word.Load())
	})
}

func TestConditionOverForeignLockLosesNoSignalEither(t *testing.T) {
	const waiters, rounds = 8, 300
	var (
		mu             sync.Mutex
		gate           syncq.ReadWrite
		c              = syncq.NewCond(&gate.Sync, syncq.FIFO)
		signals, woken int
		left           atomic.Int32
		wg             sync.WaitGroup
	)
	left.Store(waiters)
	for i := range waiters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer left.Add(-1)
			for j := range rounds {
				mu.Lock()
				limit := park.After(time.Duration((i+j)%20) * time.Microsecond)
				w := c.NewWaiter(syncq.Anonymous(int64(i+1)), limit)
				w.Enqueue(false)
				if j%7 == 0 {
					w.Abandon() // its signal goes to another waiter, if there is one
					mu.Unlock()
					continue
				}
				mu.Unlock()
				signalled := w.Await()
				mu.Lock()
				gate.Unlock()
				if signalled {
					woken++
				}
				mu.Unlock()
			}
		}()
	}
	for n := 0; left.Load() > 0; n++ {
		mu.Lock()
		if n%3 == 0 {
			signals += c.Broadcast()
		} else if c.Signal() {
			signals++
		}
		mu.Unlock()
	}
	wg.Wait()
	require.Equal(t, signals, woken)
	require.NoError(t, gate.Verify())
	require.False(t, gate.Held())
}

func TestWaiterGetsInAmongBargersThatNeverRest(t *testing.T) {
	procs(t, func(t *testing.T) {
		var (
			s    syncq.ReadWrite
			stop atomic.Bool
			wg   sync.WaitGroup
		)
		for i := range 2 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for !stop.Load() {
					if s.TryLock(syncq.Owned(int64(i + 1))) {
						s.Unlock()
					}
				}
			}()
		}
		for range 20 {
			s.Lock(syncq.Owned(3))
			s.Unlock()
		}
		stop.Store(true)
		wg.Wait()
		require.Zero(t, s.Word.Load())
	})
}
