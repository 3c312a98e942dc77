package condition_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/locktest"
)

// lockers are all kinds of locks that a condition can have, among them foreign locks.
func lockers() map[string]func() sync.Locker {
	ls := map[string]func() sync.Locker{
		"sync.Mutex":   func() sync.Locker { return new(sync.Mutex) },
		"sync.RWMutex": func() sync.Locker { return new(sync.RWMutex) },
	}
	for _, k := range locktest.Kinds() {
		ls[k.Name] = func() sync.Locker { return k.New() }
	}
	return ls
}

// realTime runs test over all lockers, on all processors and on one.
func realTime(t *testing.T, test func(t *testing.T, l sync.Locker)) {
	for name, newLocker := range lockers() {
		t.Run(name, func(t *testing.T) {
			t.Run("on all processors", func(t *testing.T) { test(t, newLocker()) })
			t.Run("on one processor", func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				test(t, newLocker())
			})
		})
	}
}

// waiters returns how many goroutines wait for a signal of c.
func waiters(l sync.Locker, c *condition.Cond) int {
	l.Lock()
	defer l.Unlock()
	return c.WaitQueueLength()
}

func TestNoSignalIsLostToARacingCancellation(t *testing.T) {
	// Of 2k waiters, every second waiter is cancelled while k signals are sent. No signal can be
	// without a waiter, since k waiters cannot give up: exactly k must return normally.
	const k = 3
	realTime(t, func(t *testing.T, l sync.Locker) {
		c := condition.New(l)
		cancelled := 0
		for range 60 {
			var normal, rest int // guarded by l
			over := false
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(context.Background())
			for i := range k {
				wg.Go(func() {
					l.Lock()
					defer l.Unlock()
					if err := c.WaitContext(ctx); err == nil && !over {
						normal++
					} else if err != nil {
						assert.ErrorIs(t, err, context.Canceled)
					}
				})
				wg.Go(func() {
					l.Lock()
					defer l.Unlock()
					if c.Wait(); over {
						rest++
					} else {
						normal++
					}
				})
				locktest.Await(t, func() bool { return waiters(l, c) == 2*(i+1) }, "the waiters")
			}
			wg.Go(cancel)
			for range k {
				l.Lock()
				c.Signal()
				l.Unlock()
			}
			locktest.Await(t, func() bool {
				l.Lock()
				defer l.Unlock()
				return normal >= k
			}, "a signal that was swallowed")
			l.Lock()
			over = true
			c.Broadcast()
			l.Unlock()
			wg.Wait()
			require.Equal(t, k, normal, "signals sent and normal returns")
			require.LessOrEqual(t, normal+rest, 2*k)
			cancelled += 2*k - normal - rest
		}
		t.Logf("%d of %d were cancelled in time", cancelled, 60*k)
	})
}

func TestNoRacingTimeLimitLosesASignal(t *testing.T) {
	// The signal is for the first waiter. If the first waiter has the limit, the signal goes to it
	// until the limit ends, and from then on to the other waiter.
	realTime(t, func(t *testing.T, l sync.Locker) {
		c := condition.New(l)
		inTime := 0
		const rounds = 200
		for i := range rounds {
			limit := 100*time.Microsecond + time.Duration(i%50)*4*time.Microsecond
			var first, second, over, waits bool // guarded by l
			var wg sync.WaitGroup
			waiting := func() bool {
				l.Lock()
				defer l.Unlock()
				return waits
			}
			wg.Go(func() {
				l.Lock()
				defer l.Unlock()
				waits = true
				first = c.WaitUntil(time.Now().Add(limit)) && !over
			})
			locktest.Await(t, waiting, "the waiter with a limit")
			began := time.Now()
			l.Lock()
			waits = false
			l.Unlock()
			wg.Go(func() {
				l.Lock()
				defer l.Unlock()
				waits = true
				c.Wait()
				second = !over
			})
			locktest.Await(t, waiting, "the waiter without a limit")
			for time.Since(began) < limit {
				runtime.Gosched()
			}
			l.Lock()
			c.Signal()
			l.Unlock()
			locktest.Await(t, func() bool {
				l.Lock()
				defer l.Unlock()
				return first || second
			}, "a signal that was swallowed")
			l.Lock()
			over = true
			c.Broadcast()
			l.Unlock()
			wg.Wait()
			require.NotEqual(t, first, second, "one signal, one normal return")
			if first {
				inTime++
			}
		}
		t.Logf("%d of %d signals came in time", inTime, rounds)
	})
}

// buffer is the bounded buffer of the textbooks.
type buffer struct {
	l                 sync.Locker
	notFull, notEmpty *condition.Cond
	items             [4]int
	put, take, count  int
}

func TestATwoConditionBufferLosesNoWakeUp(t *testing.T) {
	realTime(t, func(t *testing.T, l sync.Locker) {
		const parties, each = 4, 300
		b := &buffer{l: l, notFull: condition.New(l), notEmpty: condition.New(l)}
		produced, consumed := 0, 0 // guarded by l
		var wg sync.WaitGroup
		for p := range parties {
			wg.Go(func() {
				for i := range each {
					b.l.Lock()
					for b.count == len(b.items) {
						b.notFull.Wait()
					}
					b.items[b.put] = p*each + i
					produced += p*each + i
					b.put = (b.put + 1) % len(b.items)
					b.count++
					b.notEmpty.Signal()
					b.l.Unlock()
				}
			})
			wg.Go(func() {
				for i := range each {
					b.l.Lock()
					for b.count == 0 {
						if p%2 == 0 {
							b.notEmpty.Wait()
						} else {
							b.notEmpty.WaitFor(time.Duration(i) * time.Microsecond)
						}
					}
					consumed += b.items[b.take]
					b.take = (b.take + 1) % len(b.items)
					b.count--
					b.notFull.Signal()
					b.l.Unlock()
				}
			})
		}
		wg.Wait()
		require.Zero(t, b.count)
		require.Equal(t, produced, consumed)
		require.Zero(t, waiters(l, b.notFull)+waiters(l, b.notEmpty))
	})
}

func TestABroadcastReachesEveryWaiter(t *testing.T) {
	realTime(t, func(t *testing.T, l sync.Locker) {
		c := condition.New(l)
		const n = 30
		for range 20 {
			generation, back := 0, 0
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					l.Lock()
					defer l.Unlock()
					c.Wait()
					assert.Equal(t, 1, generation, "nobody wakes without a reason")
					back++
				})
			}
			locktest.Await(t, func() bool { return waiters(l, c) == n }, "the waiters")
			l.Lock()
			generation++
			c.Broadcast()
			l.Unlock()
			wg.Wait()
			require.Equal(t, n, back)
		}
	})
}

func TestOneConditionServesBubblesAndOthersInTurn(t *testing.T) {
	for _, k := range locktest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			l := k.New()
			c := l.NewCond()
			use := func() {
				var wg sync.WaitGroup
				ready := false
				wg.Go(func() {
					l.Lock()
					defer l.Unlock()
					for !ready {
						c.WaitFor(time.Hour)
					}
				})
				wg.Go(func() {
					l.Lock()
					defer l.Unlock()
					for !ready {
						c.Wait()
					}
				})
				l.Lock()
				c.WaitFor(time.Millisecond)
				ready = true
				c.Broadcast()
				l.Unlock()
				wg.Wait()
			}
			for range 3 {
				use()
				synctest.Test(t, func(*testing.T) { use() })
			}
			use()
			locktest.Works(t, l)
		})
	}
}
