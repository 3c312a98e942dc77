package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Waiters is the number of waiters in the workloads that end many waits at once.
const Waiters = 1024

// ContextLocker is a lock whose waits a context ends.
type ContextLocker interface {
	LockContext(context.Context) error
	UnlockContext(context.Context) error
}

// CancelledWait makes a subject that measures the processor time of the end of a wait. One
// cancellation ends [Waiters] waits.
func CancelledWait(name string, make func() ContextLocker) Subject {
	return endedWait(name, func() waits {
		l := make()
		ctx, cancel := context.WithCancel(context.Background())
		return waits{
			lock:   func() error { return l.LockContext(context.Background()) },
			wait:   func() bool { return errors.Is(l.LockContext(ctx), context.Canceled) },
			end:    cancel,
			unlock: func() error { return l.UnlockContext(context.Background()) },
		}
	})
}

// CancelledWaits is CancelledWait with a context for each wait.
func CancelledWaits(name string, make func() ContextLocker) Subject {
	return endedWait(name, func() waits {
		l := make()
		var next atomic.Int64
		var contexts [Waiters]context.Context
		var cancels [Waiters]context.CancelFunc
		for i := range contexts {
			contexts[i], cancels[i] = context.WithCancel(context.Background())
		}
		return waits{
			lock: func() error { return l.LockContext(context.Background()) },
			wait: func() bool { return errors.Is(l.LockContext(contexts[next.Add(1)-1]), context.Canceled) },
			end: func() {
				for _, cancel := range cancels {
					cancel()
				}
			},
			unlock: func() error { return l.UnlockContext(context.Background()) },
		}
	})
}

// LiveLocker is a lock whose waits a context could end, but never does.
type LiveLocker struct{ L ContextLocker }

// Lock acquires the lock.
func (l LiveLocker) Lock() {
	if err := l.L.LockContext(live); err != nil {
		panic(err)
	}
}

// Unlock releases it.
func (l LiveLocker) Unlock() {
	if err := l.L.UnlockContext(live); err != nil {
		panic(err)
	}
}

// TimedLocker is a lock whose waits a time limit ends.
type TimedLocker interface {
	sync.Locker
	TryLockFor(time.Duration) bool
}

// TimedOutWait makes a subject of the processor time that the end of a wait takes, of [Waiters]
// waits whose time limits come at once.
func TimedOutWait(name string, make func() TimedLocker) Subject {
	return endedWait(name, func() waits {
		l := make()
		deadline := time.Now().Add(100 * time.Millisecond)
		return waits{
			lock:   func() error { l.Lock(); return nil },
			wait:   func() bool { return !l.TryLockFor(time.Until(deadline)) },
			end:    func() { time.Sleep(time.Until(deadline)) },
			unlock: func() error { l.Unlock(); return nil },
		}
	})
}

// waits is a lock, and a wait for it that end brings to an end.
type waits struct {
	lock, unlock func() error
	wait         func() (ended bool)
	end          func()
}

func endedWait(name string, make func() waits) Subject {
	group := func() (float64, error) {
		w := make()
		if err := w.lock(); err != nil {
			return 0, err
		}
		var asked, wrong atomic.Int64
		var done sync.WaitGroup
		for range Waiters {
			done.Go(func() {
				asked.Add(1)
				if !w.wait() {
					wrong.Add(1)
				}
			})
		}
		for asked.Load() < Waiters {
			time.Sleep(settle)
		}
		time.Sleep(5 * settle) // for the last of them to get from there into the queue
		cost, err := InProcessorTime(Waiters, func() error {
			w.end()
			done.Wait()
			return nil
		})
		if n := wrong.Load(); err == nil && n > 0 {
			err = fmt.Errorf("bench: %d of %d waits got the lock", n, Waiters)
		}
		return cost, errors.Join(err, w.unlock())
	}
	return Cost(name, func(n int) (total float64, err error) {
		groups := (n + Waiters - 1) / Waiters
		for range groups {
			cost, err := group()
			if err != nil {
				return 0, err
			}
			total += cost / float64(groups)
		}
		return total, nil
	})
}

// LockContext and UnlockContext as programs write them with a channel.
func (l chanLock) LockContext(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l chanLock) UnlockContext(context.Context) error { <-l; return nil }

func (l chanLock) TryLockFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (l semaphoreLock) LockContext(ctx context.Context) error { return l.s.Acquire(ctx, 1) }
func (l semaphoreLock) UnlockContext(context.Context) error   { l.s.Release(1); return nil }

// Signaller is a condition.
type Signaller interface {
	Wait()
	Signal()
	Broadcast()
}

// Conditions is a lock and a way to make its conditions.
type Conditions struct {
	sync.Locker
	NewCond func() Signaller
}

// BoundedBuffer makes a subject of the processor time that an item takes through a buffer of 16,
// from so many producers to as many consumers.
func BoundedBuffer(parties int, name string, make func() Conditions) Subject {
	const size = 16
	return Cost(name, func(n int) (float64, error) {
		l := make()
		notFull, notEmpty := l.NewCond(), l.NewCond()
		items, sum := 0, 0
		return InProcessorTime(n, func() error {
			share(2*parties, 2*n, func(g, _ int) {
				for i := g % parties; i < n; i += parties {
					l.Lock()
					if g < parties {
						for items == size {
							notFull.Wait()
						}
						items++
						notEmpty.Signal()
					} else {
						for items == 0 {
							notEmpty.Wait()
						}
						items--
						sum++
						notFull.Signal()
					}
					l.Unlock()
				}
			})
			if sum != n || items != 0 {
				return fmt.Errorf("bench: %d of %d items came through, %d are left", sum, n, items)
			}
			return nil
		})
	})
}

// ConditionPingPong makes a subject of the time of a round trip between two goroutines, each of
// which signals the other and waits for its own turn.
func ConditionPingPong(name string, make func() Conditions) Subject {
	return Loop(name, func() func(int) {
		return func(n int) {
			l := make()
			conds := [2]Signaller{l.NewCond(), l.NewCond()}
			turn := 0
			share(2, 2*n, func(g, _ int) {
				l.Lock()
				for range n {
					for turn != g {
						conds[g].Wait()
					}
					turn = 1 - g
					conds[1-g].Signal()
				}
				l.Unlock()
			})
		}
	})
}

// BroadcastTo makes a subject that measures the processor time of a wait for a condition. One
// broadcast ends so many waits. Each waiter goes to the lock again before the next broadcast.
func BroadcastTo(waiters int, name string, make func() Conditions) Subject {
	return Cost(name, func(n int) (float64, error) {
		l := make()
		turn, all := l.NewCond(), l.NewCond()
		round, waiting := 0, 0
		rounds := max(1, n/waiters)
		var done sync.WaitGroup
		for range waiters {
			done.Go(func() {
				l.Lock()
				for mine := range rounds {
					if waiting++; waiting == waiters {
						all.Signal()
					}
					for round == mine {
						turn.Wait()
					}
				}
				l.Unlock()
			})
		}
		return InProcessorTime(rounds*waiters, func() error {
			for range rounds {
				l.Lock()
				for waiting < waiters {
					all.Wait()
				}
				waiting = 0
				round++
				turn.Broadcast()
				l.Unlock()
			}
			done.Wait()
			return nil
		})
	})
}
