package spin

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/effort"
)

// line has the methods that the tests of both FIFO locks need.
type line interface {
	sync.Locker
	locks.TryLocker
	TryLock() bool
	TryLockFor(d time.Duration) bool
	IsLocked() bool
	HasQueued() bool
	QueueLength() int
	Queued() []locks.Owner
}

// lines runs f with each FIFO lock, and with the check of its insides.
func lines(t *testing.T, f func(t *testing.T, l line, check func())) {
	t.Run("Ticket", func(t *testing.T) {
		l := new(Ticket)
		f(t, l, func() { checkTicket(t, l) })
	})
	t.Run("MCS", func(t *testing.T) {
		l := new(MCS)
		f(t, l, func() { checkMCS(t, l) })
	})
}

// checkTicket checks the invariants of a Ticket, which are true whenever the guard is free.
func checkTicket(t *testing.T, m *Ticket) (nodes int) {
	t.Helper()
	m.guard.Lock()
	defer m.guard.Unlock()
	w := m.serving.Load()
	require.Equal(t, m.queue.head != nil, w&sleepers != 0, "sleepers")
	var prev *ticketNode
	var voids, last uint64
	for n := m.queue.head; n != nil; n = n.next {
		require.Same(t, prev, n.prev)
		require.Greater(t, n.to, n.from)
		require.Greater(t, n.from, w>>1, "not served yet")
		if prev != nil {
			require.GreaterOrEqual(t, n.from, prev.to, "in order")
			require.False(t, prev.void() && n.void() && prev.to == n.from, "void ranges that touch")
		}
		if n.void() {
			voids += n.to - n.from
		} else {
			require.Equal(t, n.from+1, n.to)
		}
		prev, last = n, n.to
		nodes++
	}
	require.Same(t, prev, m.queue.tail)
	require.Equal(t, voids, m.queue.voids)
	require.LessOrEqual(t, last, m.next.Load())
	require.False(t, prev != nil && prev.void() && last == m.next.Load(), "the last ticket is void")
	return nodes
}

// checkMCS checks the invariants of an MCS, which are true when no goroutine is between two steps.
func checkMCS(t *testing.T, m *MCS) {
	t.Helper()
	m.guard.Lock()
	defer m.guard.Unlock()
	require.Nil(t, bare.next.Load())
	require.Zero(t, bare.state.Load())
	if m.tail.Load() == nil {
		require.Nil(t, m.first.Load())
		require.Nil(t, m.holder)
		return
	}
	if m.holder != nil {
		require.Nil(t, m.first.Load())
	}
	at := m.head()
	for n := m.link(at).Load(); n != nil; at, n = n, n.next.Load() {
		require.Same(t, at, n.prev)
		require.Less(t, n.state.Load(), granted)
	}
	require.Same(t, at, m.tail.Load())
}

// TestALineAgreesWithAList carries out random operations on a FIFO lock, and on a list of the
// waiters, and compares the lock with the list after each operation.
func TestALineAgreesWithAList(t *testing.T) {
	for seeds, n := rand.NewPCG(effort.Seed(t.Name()), 0), 0; n < 40; n++ {
		seed := seeds.Uint64()
		lines(t, func(t *testing.T, l line, check func()) {
			synctest.Test(t, func(t *testing.T) {
				t.Logf("seed %d", seed)
				rng := rand.New(rand.NewPCG(seed, 0))
				type waiter struct {
					id     locks.Owner
					cancel context.CancelFunc // nil if the waiter cannot give up
				}
				var (
					waiting []waiter
					held    bool
					holder  locks.Owner // the waiter that acquired last, by its own account
					inside  locks.Owner // the waiter that acquired last, by the list
					gone    []locks.Owner
				)
				for range 150 {
					switch op := rng.IntN(10); {
					case op < 5: // another waiter comes
						w := waiter{id: locks.NewOwner()}
						ctx := locks.WithOwner(context.Background(), w.id)
						if rng.IntN(3) > 0 {
							ctx, w.cancel = context.WithCancel(ctx)
						}
						go func() {
							if l.LockContext(ctx) == nil {
								holder = w.id
							} else {
								gone = append(gone, w.id)
							}
						}()
						if held {
							waiting = append(waiting, w)
						} else {
							held, inside = true, w.id
						}
					case op < 7: // a waiter gives up
						i := slices.IndexFunc(waiting, func(w waiter) bool { return w.cancel != nil })
						if n := len(waiting); n > 0 && rng.IntN(2) == 0 {
							if j := rng.IntN(n); waiting[j].cancel != nil {
								i = j
							}
						}
						if i < 0 {
							continue
						}
						waiting[i].cancel()
						synctest.Wait()
						require.Equal(t, waiting[i].id, gone[len(gone)-1])
						waiting = slices.Delete(waiting, i, i+1)
					case op < 8:
						if ok := l.TryLock(); ok {
							require.False(t, held)
							held, inside, holder = true, 0, 0
						} else {
							require.True(t, held)
						}
					default:
						err := l.UnlockContext(context.Background())
						if !held {
							require.ErrorIs(t, err, locks.ErrNotHeld)
							continue
						}
						require.NoError(t, err)
						if held = len(waiting) > 0; held {
							inside, waiting = waiting[0].id, waiting[1:]
						}
					}
					synctest.Wait()
					check()
					require.Equal(t, held, l.IsLocked())
					require.Equal(t, inside, holder)
					require.Equal(t, len(waiting), l.QueueLength())
					require.Equal(t, len(waiting) > 0, l.HasQueued())
					var ids []locks.Owner
					for _, w := range waiting {
						ids = append(ids, w.id)
					}
					require.Equal(t, ids, l.Queued())
				}
				for l.UnlockContext(context.Background()) == nil {
					synctest.Wait()
				}
				for _, w := range waiting {
					if w.cancel != nil {
						w.cancel()
					}
				}
				check()
			})
		})
	}
}

func TestManyTinyTimeLimitsLeaveAnEmptyQueue(t *testing.T) {
	lines(t, func(t *testing.T, l line, check func()) {
		var wg sync.WaitGroup
		count := 0
		for i := range 16 {
			wg.Go(func() {
				for j := range 300 {
					if i < 2 {
						l.Lock()
					} else if !l.TryLockFor(time.Duration(1+(i+j)%15) * time.Microsecond) {
						continue
					}
					count++
					if j%8 == 0 {
						runtime.Gosched()
					}
					l.Unlock()
				}
			})
		}
		wg.Wait()
		check()
		require.False(t, l.IsLocked())
		require.GreaterOrEqual(t, count, 600)
		if m, ok := l.(*Ticket); ok {
			require.Zero(t, checkTicket(t, m))
			require.Equal(t, m.next.Load()<<1, m.serving.Load())
		}
	})
}

func TestCancelledWaitersLeaveNoTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Ticket
		m.Lock()
		for range 1000 {
			require.False(t, m.TryLockFor(time.Microsecond))
		}
		require.EqualValues(t, 1, m.next.Load())
		require.Zero(t, checkTicket(t, &m))
		m.Unlock()
		require.True(t, m.TryLock())
		m.Unlock()
	})
}

func TestVoidTicketsBetweenTwoWaitersAreOneRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Ticket
		var got []int
		m.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 102 {
			go func() {
				if i == 0 || i == 101 {
					m.Lock()
				} else if m.LockContext(ctx) != nil {
					return
				}
				got = append(got, i)
				m.Unlock()
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		require.Equal(t, 3, checkTicket(t, &m))
		require.EqualValues(t, 100, m.queue.voids)
		require.Equal(t, 2, m.QueueLength())
		m.Unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 101}, got)
		require.Zero(t, checkTicket(t, &m))
	})
}

func TestVoidTicketsAreTakenBackFromTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Ticket
		m.Lock()
		var cancels []context.CancelFunc
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() { assert.Error(t, m.LockContext(ctx)) }()
			synctest.Wait()
		}
		give := func(i, nodes int, next uint64) {
			cancels[i]()
			synctest.Wait()
			require.Equal(t, nodes, checkTicket(t, &m), "after %d", i)
			require.Equal(t, next, m.next.Load(), "after %d", i)
		}
		give(1, 5, 6) // 1 2v 3 4 5
		give(3, 5, 6) // 1 2v 3 4v 5
		give(2, 3, 6) // 1 2-4v 5
		give(4, 1, 2) // 1
		give(0, 0, 1)
		m.Unlock()
		require.False(t, m.IsLocked())
	})
}

// long is a budget by which a waiter spins for some milliseconds, so that a test can observe the
// spin.
const long = 1 << 19

// eventually waits until f returns true, and fails the test after a minute.
func eventually(t *testing.T, f func() bool, what string) {
	t.Helper()
	for began := time.Now(); !f(); runtime.Gosched() {
		require.Less(t, time.Since(began), time.Minute, what)
	}
}

// try calls once until it returns true, at most 50 times. The result of once depends on which
// goroutines the machine runs at the same time.
func try(t *testing.T, what string, once func() bool) {
	for range 50 {
		if once() {
			return
		}
	}
	t.Fatal("never: " + what)
}

func TestOnlyTheNextWaiterSpins(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	withBudget(t, long)
	spinTime := long * pauseTime()
	t.Run("Ticket", func(t *testing.T) {
		try(t, "the second sleeps while the first spins", func() bool {
			var m Ticket
			m.Lock()
			var wg sync.WaitGroup
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, m.HasQueued, "the first")
			began := time.Now()
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, func() bool { return len(m.Queued()) > 0 }, "somebody sleeps")
			soon := time.Since(began) < spinTime/2
			m.guard.Lock()
			first := m.queue.head.from
			m.guard.Unlock()
			m.Unlock()
			wg.Wait()
			checkTicket(t, &m)
			return soon && first == 2
		})
	})
	t.Run("MCS", func(t *testing.T) {
		try(t, "the second sleeps while the first spins", func() bool {
			var m MCS
			m.Lock()
			var wg sync.WaitGroup
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, m.HasQueued, "the first")
			first := m.tail.Load()
			began := time.Now()
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, func() bool { return m.QueueLength() == 2 }, "the second")
			second := m.tail.Load()
			eventually(t, func() bool { return second.state.Load() == parked }, "the second sleeps")
			soon := time.Since(began) < spinTime/2
			spins := first.state.Load() == spinning
			m.Unlock()
			wg.Wait()
			checkMCS(t, &m)
			return soon && spins
		})
	})
}

func TestALateWaiterQueuesWhereItsTicketBelongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Ticket
		var got []int
		m.Lock()
		late := m.next.Add(1) - 1 // and then loses its processor
		for i := range 2 {
			go func() { m.Lock(); got = append(got, i); m.Unlock() }()
			synctest.Wait()
		}
		go func() { m.wait(late, 0); got = append(got, -1); m.Unlock() }()
		synctest.Wait()
		require.Equal(t, 3, checkTicket(t, &m))
		m.Unlock()
		synctest.Wait()
		require.Equal(t, []int{-1, 0, 1}, got)
	})
}

func TestAnEarlyHandoffSkipsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Ticket
		m.Lock()
		late := m.next.Add(1) - 1
		m.Unlock()
		m.Unlock() // for late, as any goroutine may
		m.Lock()
		m.wait(late, 0)
		n := newTicketNode(late, 1)
		m.guard.Lock()
		require.False(t, m.enqueue(n))
		m.guard.Unlock()
		m.Unlock()
		require.Zero(t, checkTicket(t, &m))
	})
}

func TestASpinningWaiterGetsTheLockUnparked(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	withBudget(t, long)
	t.Run("Mutex", func(t *testing.T) {
		try(t, "the waiter is awake", func() bool {
			var m Mutex
			var started, wg sync.WaitGroup
			m.Lock()
			started.Add(1)
			wg.Go(func() { started.Done(); m.Lock(); m.Unlock() })
			started.Wait()
			time.Sleep(50 * time.Microsecond)
			awake := !m.HasQueued()
			m.Unlock()
			wg.Wait()
			return awake
		})
	})
	t.Run("Ticket", func(t *testing.T) {
		try(t, "the waiter is awake", func() bool {
			var m Ticket
			var wg sync.WaitGroup
			m.Lock()
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, m.HasQueued, "the waiter")
			awake := m.serving.CompareAndSwap(0, 2) // as a release does if no waiter sleeps
			if !awake {
				m.Unlock()
			}
			wg.Wait()
			return awake
		})
	})
	t.Run("MCS", func(t *testing.T) {
		try(t, "the waiter is awake", func() bool {
			var m MCS
			var wg sync.WaitGroup
			m.Lock()
			wg.Go(func() { m.Lock(); m.Unlock() })
			eventually(t, m.HasQueued, "the waiter")
			n := m.tail.Load()
			time.Sleep(50 * time.Microsecond)
			awake := n.state.Load() == spinning
			m.Unlock()
			wg.Wait()
			return awake
		})
	})
}

func TestAReleaseSkipsAWaiterThatGaveUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	withBudget(t, long)
	lines(t, func(t *testing.T, l line, check func()) {
		var wg sync.WaitGroup
		var got []int
		enter := func(i int) { got = append(got, i); l.Unlock() }
		l.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { l.Lock(); enter(1) })
		eventually(t, func() bool { return l.QueueLength() == 1 }, "the spinner")
		wg.Go(func() { assert.ErrorIs(t, l.LockContext(ctx), context.Canceled) })
		eventually(t, func() bool { return l.QueueLength() == 2 }, "the second")
		wg.Go(func() { l.Lock(); enter(3) })
		eventually(t, func() bool { return l.QueueLength() == 3 }, "the third")
		cancel()
		eventually(t, func() bool { return l.QueueLength() == 2 }, "the second to leave")
		l.Unlock()
		wg.Wait()
		require.Equal(t, []int{1, 3}, got)
		check()
	})
}

func TestWithoutABudgetEverybodySleepsAtOnce(t *testing.T) {
	withBudget(t, 0)
	lines(t, func(t *testing.T, l line, check func()) {
		var wg sync.WaitGroup
		count := 0
		for range 20 {
			wg.Go(func() {
				for range 100 {
					l.Lock()
					count++
					l.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 2000, count)
		check()
	})
}

// arriving returns a held MCS with n waiters and the node of one more waiter. That waiter is
// between the two steps by which it joins the queue: join takes the second step.
func arriving(t *testing.T, n int) (m *MCS, last *mcsNode, join func()) {
	m = new(MCS)
	m.Lock()
	for range n {
		go m.Lock()
		synctest.Wait()
	}
	x := newMCSNode(1)
	prev := m.tail.Load()
	x.prev = prev
	require.True(t, m.tail.CompareAndSwap(prev, x))
	return m, x, func() { m.link(prev).Store(x) }
}

func TestAReleaseWaitsForAJoiningWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, x, join := arriving(t, 0)
		done := make(chan struct{})
		go func() { m.Unlock(); close(done) }()
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case <-done:
			t.Fatal("a waiter was skipped")
		default:
		}
		join()
		<-done
		require.Equal(t, granted, x.state.Load())
		x.state.Store(taken) // as its user
		checkMCS(t, m)
		m.Unlock()
		require.False(t, m.IsLocked())
	})
}

func TestACancelledWaiterAwaitsItsSuccessorsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(MCS)
		m.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- m.LockContext(ctx) }()
		synctest.Wait()
		prev := m.tail.Load()
		x := newMCSNode(1)
		x.prev = prev
		require.True(t, m.tail.CompareAndSwap(prev, x))
		cancel()
		for range 1000 {
			runtime.Gosched()
		}
		require.Empty(t, gone)
		prev.next.Store(x)
		require.ErrorIs(t, <-gone, context.Canceled)
		checkMCS(t, m)
		require.Equal(t, []locks.Owner{1}, m.Queued())
		m.Unlock()
		require.Equal(t, granted, x.state.Load())
		m.Unlock()
		require.False(t, m.IsLocked())
		checkMCS(t, m)
	})
}

func TestInspectionWaitsForAJoiningWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, join := arriving(t, 2)
		length := make(chan int, 1)
		require.True(t, m.HasQueued())
		go func() { length <- m.QueueLength() }()
		for range 1000 {
			runtime.Gosched()
		}
		require.Empty(t, length)
		join()
		require.Equal(t, 3, <-length)
		for range 4 {
			m.Unlock()
		}
		checkMCS(t, m)
	})
}

func TestAnUnlockTooManyIsReportedAndHarmless(t *testing.T) {
	lines(t, func(t *testing.T, l line, check func()) {
		for range 300 {
			l.Lock()
			var wg sync.WaitGroup
			var told [3]error
			for i := range told {
				wg.Go(func() { told[i] = l.UnlockContext(context.Background()) })
			}
			wg.Wait()
			ok := 0
			for _, err := range told {
				if err == nil {
					ok++
				} else {
					require.ErrorIs(t, err, locks.ErrNotHeld)
				}
			}
			require.Equal(t, 1, ok)
			check()
			require.False(t, l.IsLocked())
		}
	})
}
