package sqllock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
)

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		if k.ofSessions() {
			return // with the connection goes the lock
		}
		where, table := d.serve(t), sqllock.WithTable(fresh())
		p := leasetest.NewProxy(t, where)
		c := k.open(t, d.open(t, p.Addr()), term(15*time.Second), table)
		rival := k.open(t, d.open(t, where), table)
		l, other, a, b := c.Mutex("it"), rival.Mutex("other"), adaptertest.Owner(), adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		adaptertest.Hold(t, other, b)
		waits(t, refused(c, "other"), lockAndUnlock(c.Mutex("other")), func() {
			for range 2 {
				p.Refuse()
				time.Sleep(6 * time.Second) // a renewal fails
				p.Heal()
				before, _ := h.Deadline()
				soon(t, func() bool {
					after, _ := h.Deadline()
					return after.After(before)
				}, "it is renewed")
			}
			require.NoError(t, h.Err())
			require.True(t, held(t, rival.Mutex("it")))
			p.Refuse()
		}, func() {
			require.NoError(t, other.UnlockContext(b)) // nobody hears of it
			p.Heal()
		})
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestSlowAnswersKeepTheHold(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		const lease = 45 * time.Second
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		p := leasetest.NewProxy(t, where)
		pool := d.open(t, p.Addr())
		pool.SetMaxIdleConns(8)
		var conns []*sql.Conn
		for range 8 { // a new connection takes several answers
			conn, err := pool.Conn(background)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			require.NoError(t, conn.Close())
		}
		limit := sqllock.WithRequestTimeout(12 * time.Second)
		l := k.open(t, pool, term(lease), table, limit).Mutex(name)
		rival := k.open(t, d.open(t, where), table).Mutex(name)
		a := adaptertest.Owner()
		soon(t, func() bool { return l.LockContext(a) == nil })
		h, err := l.Hold(a)
		require.NoError(t, err)
		// One answer comes long before the limit, also on a busy machine. The two answers of a
		// renewal together come after the limit.
		p.Delay(6250 * time.Millisecond)
		began, asked := time.Now(), p.Requests()
		for time.Since(began) < lease*3/2 {
			require.NoError(t, h.Err())
			time.Sleep(100 * time.Millisecond)
		}
		require.True(t, held(t, rival))
		t.Logf("%d requests in %v, %d connections", p.Requests()-asked, time.Since(began), pool.Stats().OpenConnections)
		require.LessOrEqual(t, pool.Stats().InUse, 8, "they do not pile up")
		p.Heal()
		before, _ := h.Deadline()
		soon(t, func() bool {
			after, _ := h.Deadline()
			return after.After(before)
		}, "it is renewed")
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAServersRestartEndsOnlySessions(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := d.start(t)
			where := s.Addr()
			type party struct {
				kind
				l, rival *lease.Mutex
				h        locks.Hold
				got      chan error
			}
			a, b := adaptertest.Owner(), adaptertest.Owner()
			var parties []party
			for _, k := range kinds {
				table := sqllock.WithTable(fresh())
				c := k.open(t, d.open(t, where), term(time.Minute), table)
				rival := k.open(t, d.open(t, where), table)
				p := party{k, c.Mutex("of " + k.name), rival.Mutex("of " + k.name), nil, make(chan error, 1)}
				p.h = adaptertest.Hold(t, p.l, a)
				go func() { p.got <- p.rival.LockContext(b) }()
				soon(t, refused(rival, p.l.Name()))
				parties = append(parties, p)
			}
			before := make(map[string]time.Time)
			for _, p := range parties {
				before[p.name], _ = p.h.Deadline()
			}
			s.Restart()
			for _, p := range parties {
				if p.ofSessions() {
					require.NoError(t, <-p.got, p.name)
					<-p.h.Lost()
					require.True(t, time.Now().Before(before[p.name]), "the renewal did not tell")
					require.ErrorIs(t, p.l.UnlockContext(a), locks.ErrLost, p.name)
				} else {
					select {
					case err := <-p.got:
						t.Fatalf("%s: granted (%v) while held", p.name, err)
					default:
					}
					soon(t, func() bool { return p.h.Extend(a, time.Minute) == nil })
					require.NoError(t, p.l.UnlockContext(a), p.name)
					require.NoError(t, <-p.got, p.name)
					next, err := p.rival.Hold(b)
					require.NoError(t, err)
					require.Greater(t, next.Token(), p.h.Token(), p.name)
				}
				require.NoError(t, p.rival.UnlockContext(b))
			}
		})
	}
}

func TestAPausedSessionsHolderLearnsOfItsLoss(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, name := d.serve(t), fresh()
			rival := advisory.open(t, d.open(t, where)).Mutex(name)
			c := child(t, "hold", advisory, d, where, name)
			require.Equal(t, "held", c.Line())
			c.Pause()
			time.Sleep(leaseOfChild + short)
			require.True(t, held(t, rival), "the server keeps the lock")
			c.Say("go on")
			c.Resume()
			require.Equal(t, "lost: true", c.Line())
			b := adaptertest.Owner()
			adaptertest.Hold(t, rival, b)
			require.NoError(t, rival.UnlockContext(b))
		})
	}
}
