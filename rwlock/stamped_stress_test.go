package rwlock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/rwlock"
)

// stampedProcs runs f with 1, 2 and 8 processors.
func stampedProcs(t *testing.T, f func(t *testing.T)) {
	for _, n := range []int{1, 2, 8} {
		t.Run(map[int]string{1: "on one processor", 2: "on two", 8: "on eight"}[n], func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			f(t)
		})
	}
}

// stampedPair is guarded by l. Writers keep x and y equal; plain is for holders of the lock.
type stampedPair struct {
	l     rwlock.StampedLock
	x, y  atomic.Int64
	plain [2]int
}

// write is a critical section of a writer.
func (p *stampedPair) write(t *testing.T, yield bool) {
	n := p.x.Add(1)
	if p.plain[0]++; yield {
		runtime.Gosched()
	}
	p.plain[1]++
	if p.y.Add(1) != n || p.plain[0] != p.plain[1] {
		t.Error("another writer is inside")
	}
}

// read is a critical section of a reader.
func (p *stampedPair) read(t *testing.T, yield bool) {
	x, n := p.x.Load(), p.plain[0]
	if yield {
		runtime.Gosched()
	}
	if p.y.Load() != x || p.plain[1] != n {
		t.Error("a writer is inside together with a reader")
	}
}

func pick[F any](write bool, w, r F) F {
	if write {
		return w
	}
	return r
}

func TestEveryWayToAcquireExcludesAndOrdersMemory(t *testing.T) {
	stampedProcs(t, func(t *testing.T) {
		const rounds = 200
		var p stampedPair
		l := &p.l
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		var written atomic.Int64
		party := func(acquire func() rwlock.Stamp) {
			wg.Go(func() {
				for i := range rounds {
					st := acquire()
					for st == 0 {
						runtime.Gosched()
						st = acquire()
					}
					// Two modes in one hold, by conversion, now and then.
					if st.IsReadLock() {
						p.read(t, i%4 == 0)
						if w := l.TryConvertToWriteLock(st); w != 0 {
							st = w
						}
					}
					if st.IsWriteLock() {
						p.write(t, i%8 == 0)
						written.Add(1)
						switch i % 3 {
						case 1:
							st = l.TryConvertToReadLock(st)
							p.read(t, i%4 == 0)
						case 2:
							if st = l.TryConvertToOptimisticRead(st); !st.IsOptimisticRead() {
								t.Error("a write hold converts to optimistic")
							}
						}
					}
					if st.IsLock() {
						l.Unlock(st)
					}
				}
			})
		}
		for _, write := range []bool{true, false} {
			party(pick(write, l.WriteLock, l.ReadLock))
			party(pick(write, l.TryWriteLock, l.TryReadLock))
			// Each failure doubles the limit: on a busy machine a microsecond is over before the
			// try.
			for _, first := range []time.Duration{time.Microsecond, time.Minute} {
				limited := func(acquire func(d time.Duration) rwlock.Stamp) func() rwlock.Stamp {
					d := first
					return func() rwlock.Stamp {
						st := acquire(d)
						if st == 0 {
							d *= 2
						} else {
							d = first
						}
						return st
					}
				}
				party(limited(pick(write, l.TryWriteLockFor, l.TryReadLockFor)))
				contextual := pick(write, l.WriteLockContext, l.ReadLockContext)
				party(limited(func(d time.Duration) rwlock.Stamp {
					ctx, cancel := context.WithTimeout(ctx, d)
					defer cancel()
					st, _ := contextual(ctx)
					return st
				}))
			}
			party(func() rwlock.Stamp {
				if write {
					return l.TryConvertToWriteLock(l.TryOptimisticRead())
				}
				return l.TryConvertToReadLock(l.TryOptimisticRead())
			})
		}
		stop := make(chan struct{})
		var opener sync.WaitGroup
		opener.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					rwlock.OpenStampedTable(l)
					runtime.Gosched()
				}
			}
		})
		wg.Wait()
		close(stop)
		opener.Wait()
		require.Equal(t, written.Load(), p.x.Load())
		require.EqualValues(t, written.Load(), p.plain[0])
		stampedFree(t, l)
	})
}

func TestAValidatedOptimisticReadIsNeverTorn(t *testing.T) {
	stampedProcs(t, func(t *testing.T) {
		var p stampedPair
		var stop atomic.Bool
		var valid, invalid atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for i := 0; !stop.Load(); i++ {
					st := p.l.TryOptimisticRead()
					x := p.x.Load()
					if i%16 == 0 {
						runtime.Gosched()
					}
					y := p.y.Load()
					if !p.l.Validate(st) {
						invalid.Add(1)
						runtime.Gosched()
						continue
					}
					valid.Add(1)
					if x != y {
						t.Errorf("%d is not %d", x, y)
						return
					}
				}
			})
		}
		for i := 0; i < 2000 || invalid.Load() == 0 && i < 200_000; i++ {
			st := p.l.WriteLock()
			p.write(t, i%4 == 0)
			p.l.UnlockWrite(st)
			if i%4 == 1 {
				runtime.Gosched()
			}
		}
		stampedAwaitValid(t, &valid)
		stop.Store(true)
		wg.Wait()
		require.NotZero(t, invalid.Load(), "writers have come in between")
		stampedFree(t, &p.l)
	})
}

// stampedAwaitValid waits for an optimistic read that succeeds.
func stampedAwaitValid(t *testing.T, valid *atomic.Int64) {
	for began := time.Now(); valid.Load() == 0; runtime.Gosched() {
		if time.Since(began) > time.Minute {
			t.Fatal("no optimistic read is ever valid")
		}
	}
}

func TestOneRacingUpgradeSucceedsAtMost(t *testing.T) {
	var l rwlock.StampedLock
	upgraded := 0
	var total atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				st := l.ReadLock()
				if i%4 == 0 {
					runtime.Gosched()
				}
				if w := l.TryConvertToWriteLock(st); w != 0 {
					upgraded++
					total.Add(1)
					st = w
				}
				l.Unlock(st)
			}
		})
	}
	wg.Go(func() {
		for range 500 {
			st := l.WriteLock()
			upgraded += 0
			l.UnlockWrite(st)
			runtime.Gosched()
		}
	})
	wg.Wait()
	require.NotZero(t, upgraded)
	require.EqualValues(t, total.Load(), upgraded)
	stampedFree(t, &l)
}

func TestConversionsThatRaceWithWaitersLoseNobody(t *testing.T) {
	var p stampedPair
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 400 {
				st := p.l.WriteLock()
				p.write(t, random.IntN(4) == 0)
				if st = p.l.TryConvertToReadLock(st); !assert.NotZero(t, st) {
					return
				}
				p.read(t, random.IntN(4) == 0)
				if w := p.l.TryConvertToWriteLock(st); w != 0 {
					p.write(t, random.IntN(4) == 0)
					st = w
				}
				if random.IntN(2) == 0 {
					p.l.Unlock(st)
				} else if !assert.NotZero(t, p.l.TryConvertToOptimisticRead(st)) {
					return
				}
				r := p.l.ReadLock()
				p.read(t, random.IntN(4) == 0)
				p.l.UnlockRead(r)
			}
		})
	}
	wg.Wait()
	stampedFree(t, &p.l)
}

func TestAWriteStampIsReleasedOnce(t *testing.T) {
	var l rwlock.StampedLock
	for range 500 {
		st := l.WriteLock()
		var released atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				defer func() { _ = recover() }()
				l.UnlockWrite(st)
				released.Add(1)
			})
		}
		wg.Go(func() { l.UnlockWrite(l.WriteLock()) })
		wg.Go(func() { l.UnlockRead(l.ReadLock()) })
		wg.Wait()
		require.EqualValues(t, 1, released.Load())
		stampedFree(t, &l)
	}
}
