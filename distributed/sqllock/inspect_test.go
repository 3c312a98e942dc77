package sqllock_test

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

func inspect(t *testing.T, l *lease.Mutex) locks.Info {
	t.Helper()
	i, err := l.Inspect(background)
	require.NoError(t, err)
	return i
}

func TestInspectSaysWhetherALockIsHeld(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, d := range k.on {
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
				l := k.open(t, d.open(t, where), table).Mutex(name)
				other := k.open(t, d.open(t, where), table).Mutex(name)
				require.False(t, inspect(t, l).Held)
				o := locks.NewOwner()
				h := adaptertest.Hold(t, l, as(o))
				i := inspect(t, l)
				require.True(t, i.Held)
				require.Len(t, i.Holders, 1)
				require.Equal(t, o, i.Holders[0].Owner)
				require.Equal(t, os.Getpid(), i.Holders[0].PID)
				require.Equal(t, h.Token(), i.Holders[0].Token)
				require.Positive(t, i.Holders[0].Left)
				require.WithinDuration(t, time.Now(), i.Holders[0].Since, time.Minute)
				seen := inspect(t, other)
				require.True(t, seen.Held)
				for _, p := range seen.Holders {
					require.Zero(t, p.Owner)
				}
				require.NoError(t, l.UnlockContext(as(o)))
				require.False(t, inspect(t, other).Held)
			})
		}
	}
}

func TestATableTellsProcessesAndQueue(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
			l := queueKind.open(t, d.open(t, where), table, sqllock.WithLabel("orders")).Mutex(name)
			other := queueKind.open(t, d.open(t, where), table, sqllock.WithLabel("billing")).Mutex(name)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			got := inBackground(func() error { return other.LockContext(b) })
			soon(t, func() bool {
				i := inspect(t, l)
				return i.Waiting == 1 && i.Waiters[0].PID != 0
			})
			i := inspect(t, l)
			require.Equal(t, "billing", i.Waiters[0].Label)
			require.WithinDuration(t, time.Now(), i.Waiters[0].Since, time.Minute)
			i = inspect(t, other)
			require.Equal(t, 1, i.Waiting)
			require.NotZero(t, i.Waiters[0].Owner)
			soon(t, func() bool { return inspect(t, other).Holders[0].PID != 0 })
			p := inspect(t, other).Holders[0]
			require.Equal(t, "orders", p.Label)
			require.Equal(t, h.Token(), p.Token)
			require.InDelta(t, lease.DefaultLease, p.Left, float64(25*time.Second))
			require.WithinDuration(t, time.Now(), p.Since, time.Minute)
			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, <-got)
			require.NoError(t, other.UnlockContext(b))
		})
	}
}

func TestATableOfAnEarlierLayoutHasLocks(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table, name := d.serve(t), fresh(), fresh()
			db := d.open(t, where)
			l := tableKind.open(t, db, sqllock.WithTable(table)).Mutex(name)
			_, err := db.Exec("DROP TABLE " + table + "_clients")
			require.NoError(t, err)
			other := tableKind.open(t, d.open(t, where), sqllock.WithTable(table)).Mutex(name)
			_, err = db.Exec("DROP TABLE " + table + "_clients")
			require.NoError(t, err)
			a := adaptertest.Owner()
			adaptertest.Hold(t, l, a)
			i := inspect(t, other)
			require.Len(t, i.Holders, 1)
			require.Zero(t, i.Holders[0].PID)
			require.NotEmpty(t, i.Holders[0].Label, "the owner's name in the table")
			require.NoError(t, l.UnlockContext(a))
		})
	}
}

func TestPostgresTellsTheProgramOfASession(t *testing.T) {
	t.Parallel()
	where, name := inPgx.serve(t), fresh()
	db, err := sql.Open("pgx", dsn(inPgx.dialect, where)+"&application_name=orders")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	l := advisory.open(t, db).Mutex(name)
	other := advisory.open(t, inPgx.open(t, where)).Mutex(name)
	a := adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	i := inspect(t, other)
	require.Len(t, i.Holders, 1)
	require.Equal(t, "127.0.0.1", i.Holders[0].Host)
	require.Equal(t, "orders", i.Holders[0].Label)
	require.NoError(t, l.UnlockContext(a))
}
