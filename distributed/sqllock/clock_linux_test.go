package sqllock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestTheNextRenewalNoticesASetServerClock(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			env, set := testbed.Clock(t)
			where := d.start(t, env...).Addr()
			for _, k := range inTables {
				table := sqllock.WithTable(fresh())
				l := k.open(t, d.open(t, where), term(15*time.Second), table).Mutex("it")
				rival := k.open(t, d.open(t, where), table, term(time.Minute)).Mutex("it")
				a, b := adaptertest.Owner(), adaptertest.Owner()

				// Forward: two hold it for a moment, which the token tells apart, until the
				// first one asks.
				h := adaptertest.Hold(t, l, a)
				set(time.Hour)
				next := adaptertest.Hold(t, rival, b)
				require.Greater(t, next.Token(), h.Token())
				select {
				case <-h.Lost():
				case <-time.After(testbed.Hang):
					t.Fatal("the renewal did not tell")
				}
				require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

				// Back: the holder goes on to be one, and gives the lock back.
				set(-time.Hour)
				require.True(t, held(t, l))
				require.NoError(t, next.Extend(b, time.Minute))
				require.NoError(t, rival.UnlockContext(b))
				h = adaptertest.Hold(t, l, a)
				require.Greater(t, h.Token(), next.Token())
				require.True(t, held(t, rival))
				require.NoError(t, l.UnlockContext(a))
				require.False(t, held(t, rival))
				set(0)
			}

			// Locks of sessions know no time.
			l := advisory.open(t, d.open(t, where), term(15*time.Second)).Mutex("it")
			rival := advisory.open(t, d.open(t, where)).Mutex("it")
			a := adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			table := sqllock.WithTable(fresh())
			row := openRow(t, d.open(t, where), table)
			end := work(t, openRow(t, d.open(t, where), table), a, "it")
			for _, by := range []time.Duration{time.Hour, -time.Hour, 0} {
				set(by)
				require.NoError(t, h.Extend(a, 15*time.Second))
				require.True(t, held(t, rival))
				require.True(t, worked(t, row, "it"))
			}
			require.NoError(t, l.UnlockContext(a))
			require.False(t, held(t, rival))
			end()
			require.NoError(t, row.Do(a, "it", nothing))
		})
	}
}
