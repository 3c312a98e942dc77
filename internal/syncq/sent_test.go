package syncq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// Readers that are sent: a release under NonFair, for which only readers wait, frees the lock and
// tells them to ask again.

// readable returns a lock that party 1 holds exclusively, and whose release may send readers,
// whatever the number of processors.
func readable(t *testing.T) *ReadWrite {
	s := new(ReadWrite)
	s.readers().alone = false
	require.True(t, s.TryLock(Owned(1)))
	return s
}

// sleepingReader returns the wait of reader o, which the test plays itself.
func sleepingReader(t *testing.T, s *ReadWrite, o int64) *node {
	t.Helper()
	n := s.newNode(Owned(o), true)
	n.sendable = true
	require.True(t, s.join(n))
	return n
}

func TestAReleaseFreesLockForWhichOnlyReadersWait(t *testing.T) {
	s := readable(t)
	first, second := sleepingReader(t, s, 2), sleepingReader(t, s, 3)
	require.Equal(t, Value(1)|flagQueued|flagReserved, s.Word.Load())
	require.True(t, s.Release(1))
	require.Zero(t, s.Word.Load(), "free, and nobody waits")
	require.Zero(t, s.Len())
	require.NoError(t, s.Verify())
	for _, n := range []*node{first, second} {
		n.place.Park()
		queued, _ := n.askAgain()
		require.False(t, queued)
		require.Equal(t, granted, n.state)
		n.recycle()
	}
	require.Equal(t, 2*oneHold|flagShared, s.Word.Load())
	require.True(t, s.UnlockShared())
	require.True(t, s.UnlockShared())
	idle(t, s)
}

func TestReadersThatWereOvertakenAskAgain(t *testing.T) {
	s := readable(t)
	first, second := run(func() bool { return s.Read(Owned(2)) }), run(func() bool { return s.Read(Owned(3)) })
	testbed.Await(t, func() bool { return s.Len() == 2 })
	s.guard.Lock()
	wake, ok := s.advance(drop)
	require.True(t, ok)
	require.True(t, s.TryLock(Owned(1)), "the lock is free before a reader runs")
	s.guard.Unlock()
	unpark(wake)
	testbed.Await(t, func() bool { return s.Len() == 2 })
	require.NoError(t, s.Verify())
	require.True(t, s.Release(1))
	require.True(t, first.result(t))
	require.True(t, second.result(t))
	require.True(t, s.ReleaseRead(2))
	require.True(t, s.ReleaseRead(3))
	idle(t, s)
}

// overtakes takes the lock for party 1, ahead of n, which a release has sent. Then n asks again, in
// vain.
func overtakes(t *testing.T, s *ReadWrite, n *node) {
	t.Helper()
	require.True(t, s.TryLock(Owned(1)))
	n.place.Park()
	queued, guard := n.askAgain()
	require.True(t, queued)
	if guard != nil {
		guard.Unlock()
	}
}

// The time does not count: see TestAReaderSentInVainIsSentAgainHoweverLongItHasWaited.
func TestAReaderSentInVainTooOftenIsGrantedTheLock(t *testing.T) {
	s := readable(t)
	n := sleepingReader(t, s, 2)
	for range MaxLost {
		require.True(t, s.Release(1))
		require.Zero(t, s.Word.Load())
		overtakes(t, s, n)
	}
	fresh := sleepingReader(t, s, 3)
	require.True(t, s.Release(1))
	require.False(t, s.TryLock(Owned(1)), "the lock is handed over")
	require.Equal(t, 2, s.Shared(), "to all readers")
	for _, n := range []*node{n, fresh} {
		n.place.Park()
		queued, _ := n.askAgain()
		require.False(t, queued)
		n.recycle()
		require.True(t, s.UnlockShared())
	}
	idle(t, s)
}

// If the reader were granted the lock, all others would wait until the reader has a processor.
func TestAReaderSentInVainIsSentAgainHoweverLongItHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readable(t)
		n := sleepingReader(t, s, 2)
		for range 2 {
			time.Sleep(time.Hour)
			require.True(t, s.Release(1))
			overtakes(t, s, n)
		}
		time.Sleep(time.Hour)
		require.True(t, s.Release(1))
		require.Zero(t, s.Word.Load(), "the lock is free before the reader runs")
		n.place.Park()
		queued, _ := n.askAgain()
		require.False(t, queued)
		n.recycle()
		require.True(t, s.UnlockShared())
		idle(t, s)
	})
}

// A sent reader that is overdue would otherwise wait while others are sent.
func TestReadersAreGrantedTheLockUnlessAllMayBeSent(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, s *ReadWrite) *node{
		"an explicit owner waits": func(_ *testing.T, s *ReadWrite) *node { return s.NewWaiter(Owned(-3), true, nil).n },
		"a lone processor": func(t *testing.T, s *ReadWrite) *node {
			s.table.Load().alone = true
			n := s.newNode(Owned(3), true)
			n.sendable = true
			return n
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := readable(t)
			n := sleepingReader(t, s, 2)
			other := prepare(t, s)
			require.True(t, s.join(other))
			require.True(t, s.Release(1))
			require.Equal(t, 2*oneHold|flagShared, s.Word.Load())
			for _, n := range []*node{n, other} {
				n.place.Park()
				require.Equal(t, granted, n.state)
				n.recycle()
				require.True(t, s.UnlockShared())
			}
			idle(t, s)
		})
	}
}

// The reader's limit ends after a release has sent the reader, and before the reader is unparked.
func TestReaderWhoseLimitEndsWhenItIsSentAsksOnce(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		t.Run(fmt.Sprint(overtaken), func(t *testing.T) {
			s := readable(t)
			ctx, cancel := context.WithCancel(t.Context())
			out := make(chan Outcome, 1)
			go func() { out <- s.ReadContext(ctx, Owned(2)) }()
			testbed.Await(t, func() bool { return s.Len() == 1 })
			s.guard.Lock()
			wake, ok := s.advance(drop)
			require.True(t, ok)
			cancel()
			atGuard(t, 1, "syncq.(*node).leave")
			want := Acquired
			if overtaken {
				require.True(t, s.TryLock(Owned(1)))
				want = Ended
			}
			s.guard.Unlock()
			unpark(wake)
			require.Equal(t, want, <-out)
			require.Zero(t, s.Len())
			if overtaken {
				require.True(t, s.Release(1))
			} else {
				require.True(t, s.ReleaseRead(2))
			}
			idle(t, s)
		})
	}
}

// refuser refuses each wait, after the holder has released the lock.
type refuser struct {
	Watcher
	release func()
}

func (r refuser) Begin(e Entry) bool {
	e.Enqueue()
	r.release()
	e.Refuse()
	return false
}
func (refuser) Watch(*Sync, *Kind)           {}
func (refuser) Queued(*Sync, int64) bool     { return false }
func (refuser) Acquired(*Sync, *Kind, int64) {}

func TestReaderThatWasSentIsNotRefused(t *testing.T) {
	s := readable(t)
	was := watcher.Load()
	SetWatcher(refuser{release: func() { s.Release(1) }})
	defer watcher.Store(was)
	require.Equal(t, Acquired, s.AcquireRead(Owned(2).Of(&Kind{Name: "test", Refusable: true}), nil))
	require.Equal(t, 1, s.Shared())
	require.True(t, s.ReleaseRead(2))
	idle(t, s)
}

// Writers that come and go overtake readers, some of which give up.
func TestSentReadersLoseNoWakeUp(t *testing.T) {
	for _, procs := range []int{2, 8} {
		t.Run(fmt.Sprint(procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			s := new(ReadWrite)
			s.readers().alone = false
			var x, y int
			var all sync.WaitGroup
			for g := range int64(12) {
				all.Go(func() {
					me, random := Owned(g+1), rand.New(rand.NewPCG(1, uint64(g)))
					for range 1500 {
						switch {
						case random.IntN(4) == 0:
							s.Lock(me)
							x++
							if random.IntN(8) == 0 {
								runtime.Gosched()
							}
							y++
							s.Wrote()
							s.Release(g + 1)
							continue
						case random.IntN(3) > 0:
							s.Read(me)
						case !s.ReadFor(me, time.Duration(random.IntN(50))*time.Microsecond):
							continue
						}
						if x != y {
							t.Error("a reader sees half of a write")
						}
						s.ReleaseRead(g + 1)
					}
				})
			}
			done := run(func() bool { all.Wait(); return true })
			require.True(t, done.result(t))
			require.NoError(t, s.Verify())
			require.True(t, s.Idle())
		})
	}
}
