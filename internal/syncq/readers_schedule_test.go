package syncq

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// As in schedule_test.go, these tests hold the guard, or a bucket, or take a single step of the
// protocol by hand, to bring about the rare orders of events.

const unread = one | shared | visible // the table's hold alone, without bias

// bothPolicies runs f with a lock of each.
func bothPolicies(t *testing.T, f func(t *testing.T, s *Sync, policy Policy)) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			var s Sync
			f(t, &s, policy)
			require.NoError(t, s.Verify())
			require.True(t, s.Idle())
			require.Zero(t, s.ReadCount())
			require.True(t, s.table().empty())
		})
	}
}

// settled waits a little for others to come to a point that they may not come to.
func settled(ok func() bool) {
	for deadline := time.Now().Add(2 * time.Millisecond); !ok() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
}

func writes(s *Sync, o int64, policy Policy) call {
	return run(func() bool { s.Lock(Owned(o), policy); return true })
}

func reads(s *Sync, o int64, policy Policy) call {
	return run(func() bool { s.Read(o, policy); return true })
}

func TestAnUpgradeWhileAnotherGoroutineOfTheOwnerComesInLeavesALegalWord(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		for range 50 {
			const o = -7
			require.True(t, s.TryLockShared()) // stands for a reader on its way into the table
			s.guard.Lock()
			var upgraded, has bool
			up := run(func() bool { upgraded, has = s.Upgrade(o); return true })
			time.Sleep(50 * time.Microsecond) // so that it is the first to get the guard
			in := reads(s, o, policy)
			settled(func() bool { return s.table().bucket(o).holdsOf(o) == 1 })
			s.Word.Add(^(one - 1)) // the other reader is gone
			s.guard.Unlock()
			require.True(t, up.result(t))
			require.True(t, in.result(t))
			if upgraded {
				require.True(t, has)
				require.Equal(t, value(o), s.Word.Load(), "no one reads beside a writer")
				require.True(t, s.LeaveWrite(o, policy))
			} else {
				require.True(t, s.Unread(o, policy))
			}
			require.False(t, s.Unread(o, policy))
			s.Revoke(policy)
			require.Zero(t, s.Word.Load())
		}
	})
}

func TestAReadHoldGivenBackByAnotherGoroutineOfTheOwnerBeforeItIsSettledIsNotForgotten(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		for range 50 {
			const o = -7
			require.True(t, s.TryLockShared()) // stands for a reader on its way into the table
			s.guard.Lock()
			var left bool
			out := run(func() bool { left = s.Unread(o, policy); return true })
			time.Sleep(50 * time.Microsecond)
			in := reads(s, o, policy)
			settled(func() bool { return s.table().bucket(o).holdsOf(o) == 1 })
			w := run(func() bool { s.Lock(Owned(1), policy); return s.LeaveWrite(1, policy) })
			s.Word.Add(^(one - 1))
			s.guard.Unlock()
			require.True(t, out.result(t))
			require.True(t, in.result(t))
			if !left {
				require.True(t, s.Unread(o, policy))
			}
			require.True(t, w.result(t), "the writer is not left behind a hold that nobody has")
			s.Revoke(policy)
		}
	})
}
