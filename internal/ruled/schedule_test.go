package ruled

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

type permits struct{}

func (permits) Acquire(free, n uint64) (uint64, bool) { return free - n, free >= n }
func (permits) Release(free, n uint64) (uint64, bool) { return free + n, true }

func TestRefusedWaitersLeaveAndAdmitTheNext(t *testing.T) {
	for _, barges := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s Sync[permits]
			s.Init(permits{}, 0, barges)
			outcomes := make([]syncq.Outcome, 4)
			for i, n := range []uint64{9, 3, 8, 2} {
				go func() { outcomes[i] = s.Wait(n, 0, nil) }()
				synctest.Wait()
			}
			s.Release(5)
			s.Refuse(func(n uint64) bool { return n > 5 })
			synctest.Wait()
			require.Equal(t, []syncq.Outcome{syncq.Refused, syncq.Acquired, syncq.Refused, syncq.Acquired}, outcomes)
			require.Zero(t, s.Word())
			require.False(t, s.HasQueued())
			require.Equal(t, syncq.Refused, s.Wait(6, 0, nil), "later waits too")
		})
	}
}

func TestARefusedWaitThatItsCallerSelectsGetsOnePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[permits]
		s.Init(permits{}, 0, false)
		s.Refuse(func(n uint64) bool { return n > 5 })
		told := s.Begin(6, 7)
		<-told.Permits()
		require.Equal(t, syncq.Refused, told.Outcome())
		ended := s.Begin(6, 7)
		require.Equal(t, syncq.Refused, s.Leave(ended), "also if its limit has ended")
		require.Empty(t, ended.Permits())
		require.False(t, s.HasQueued())
	})
}

func TestLeaverAwaitsTheUnparkOfItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sync[permits]
		n := &Node{arg: 1, who: 7}
		n.place.Open()
		s.guard.Lock()
		s.queue.push(n)
		s.advance()
		s.guard.Unlock()

		s.word.Store(1)
		s.guard.Lock()
		wake := s.advance() // a release that has still to unpark
		s.guard.Unlock()
		left := false
		go func() {
			require.Equal(t, syncq.Acquired, s.Leave(n))
			left = true
		}()
		synctest.Wait()
		require.False(t, left)
		unpark(wake)
		synctest.Wait()
		require.True(t, left)
	})
}
