package sqllock_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

const short = 1200 * time.Millisecond // a lease

func as(o locks.Owner) context.Context { return locks.WithOwner(background, o) }

// each runs f for all kinds on all databases that are servers, or on all.
func each(t *testing.T, remote bool, f func(t *testing.T, k kind, d database)) {
	t.Helper()
	for _, k := range allKinds {
		for _, d := range k.on {
			if d.driver == inPq.driver || remote && d.dialect == sqllock.SQLite {
				continue
			}
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				f(t, k, d)
			})
		}
	}
}

func TestAHolderLearnsOfItsLossFirst(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		where := d.serve(t)
		for phase := range 5 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				p := leasetest.NewProxy(t, where)
				table, name := sqllock.WithTable(fresh()), fresh()
				rival := k.open(t, d.open(t, where), table).Mutex(name)
				// The margin lets the holder run in time on a busy machine.
				limits := sqllock.WithLeaseOptions(lease.WithTTL(5*short), lease.WithMargin(2*short))
				l := k.open(t, d.open(t, p.Addr()), limits, table).Mutex(name)
				a, b := adaptertest.Owner(), adaptertest.Owner()
				h := adaptertest.Patiently(t, l, a)
				time.Sleep(time.Duration(phase) * short / 15)
				var told bool // when the rival was granted the lock
				granted := make(chan struct{})
				go func() {
					defer close(granted)
					assert.NoError(t, rival.LockContext(b))
					select {
					case <-h.Lost():
						told = true
					default:
					}
				}()
				if phase%2 == 0 {
					p.Cut()
				} else {
					p.CutReplies()
				}
				<-h.Lost()
				require.ErrorIs(t, h.Err(), locks.ErrLost)
				if k.ofSessions() {
					// The server keeps the lock until it hears that the connection is closed.
					p.Heal()
					p.Reset()
				}
				<-granted
				require.True(t, told)
				require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
				require.NoError(t, rival.UnlockContext(b))
				p.Heal()
				p.Reset()
			})
		}
	})
}

func TestAHoldOnAPausedServerStaysLost(t *testing.T) {
	t.Parallel()
	server := startMariaDB(t)
	where := server.Addr()
	type party struct {
		l, rival *lease.Mutex
		h        locks.Hold
	}
	a, b := adaptertest.Owner(), adaptertest.Owner()
	var parties []party
	for _, k := range kinds {
		table := sqllock.WithTable(fresh())
		l := k.open(t, inMaria.open(t, where), term(6*short), table).Mutex("lock of " + k.name)
		rival := k.open(t, inMaria.open(t, where), term(6*short), table).Mutex(l.Name())
		require.False(t, held(t, rival))
		parties = append(parties, party{l, rival, adaptertest.Hold(t, l, a)})
		require.True(t, held(t, rival))
	}
	server.Pause()
	for _, p := range parties {
		<-p.h.Lost()
	}
	time.Sleep(short) // beyond the leases
	server.Resume()
	for _, p := range parties {
		soon(t, func() bool { ok, _ := p.rival.TryLockContext(b); return ok }, p.l.Name())
		require.ErrorIs(t, p.h.Err(), locks.ErrLost)
		require.ErrorIs(t, p.l.UnlockContext(a), locks.ErrLost)
		require.NoError(t, p.rival.UnlockContext(b))
	}
}

// swift has requests given up soon, and repeated in time.
var swift = sqllock.WithRequestTimeout(4 * time.Second)

// held reports whether the lock has a holder.
func held(tb testing.TB, l *lease.Mutex) bool {
	tb.Helper()
	a := adaptertest.Owner()
	ok, err := l.TryLockContext(a)
	require.NoError(tb, err)
	if ok {
		require.NoError(tb, l.UnlockContext(a))
	}
	return !ok
}

// proxied returns a lock of a name of its own through a proxy, and the same past it.
func proxied(t *testing.T, k kind, d database, opts ...sqllock.Option) (p *leasetest.Proxy, l, direct *lease.Mutex) {
	t.Helper()
	where := d.serve(t)
	p = leasetest.NewProxy(t, where)
	table, name := sqllock.WithTable(fresh()), "lock-"+fresh()
	direct = k.open(t, d.open(t, where), table).Mutex(name)
	l = k.open(t, d.open(t, p.Addr()), append(opts, table)...).Mutex(name)
	a := adaptertest.Owner() // what has to be prepared is prepared
	soon(t, func() bool { return l.LockContext(a) == nil && l.UnlockContext(a) == nil })
	return p, l, direct
}

// word returns what the requests are told by that concern l.
func word(k kind, d database, l *lease.Mutex) string {
	switch {
	case !k.ofSessions() || d.dialect == sqllock.MySQL:
		return l.Name()
	}
	return "" // any request
}

func TestALostGrantLeavesOneHoldOrNone(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		p, l, direct := proxied(t, k, d)
		a := adaptertest.Owner()
		p.ResetReply(word(k, d, l), 1)
		err := l.LockContext(a)
		require.Equal(t, 1, p.Drops())
		if err == nil { // the database was asked who has it
			require.True(t, held(t, direct))
			require.NoError(t, l.UnlockContext(a))
			require.False(t, held(t, direct), "held twice")
			return
		}
		require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not the caller's context that ended")
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		soon(t, func() bool { return !held(t, direct) })
		require.NotContains(t, []string{tableKind.name}, k.name, "a table can be asked")
	})
}

func TestACancelledAcquisitionWithoutReplyIsUndone(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		const limit = 2 * testbed.Hang
		p, l, direct := proxied(t, k, d, sqllock.WithRequestTimeout(limit))
		p.DropReply(word(k, d, l), 1)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(adaptertest.Owner())
		var cancelled time.Time
		go func() {
			for p.Drops() == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancelled = time.Now()
			cancel(gone)
		}()
		err := l.LockContext(ctx)
		require.Less(t, time.Since(cancelled), limit/2, "sooner than the request's end")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, gone)
		require.Equal(t, 1, p.Drops())
		p.Reset() // a session keeps its lock until its connection ends
		soon(t, func() bool { return !held(t, direct) })
	})
}

// A Table asks again. The lock of a session may have been lost before the request came.
func TestALostReleaseReplyLosesSessionsOnly(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		p, l, direct := proxied(t, k, d)
		a := adaptertest.Owner()
		adaptertest.Hold(t, l, a)
		p.ResetReply(word(k, d, l), 1)
		err := l.UnlockContext(a)
		if k.ofSessions() {
			require.ErrorIs(t, err, locks.ErrLost)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, 1, p.Drops())
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		soon(t, func() bool { return !held(t, direct) })
	})
}

// lib/pq says that a connection is bad also if the server has carried the last statement out. The
// pool would repeat it.
func TestAReleaseWhoseConnectionIsClosedIsNoLoss(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{tableKind, queueKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p, l, direct := proxied(t, k, inPq)
			a := adaptertest.Owner()
			adaptertest.Hold(t, l, a)
			p.DropReply(l.Name(), 1)
			released := inBackground(func() error { return l.UnlockContext(a) })
			soon(t, func() bool { return p.Drops() == 1 && !held(t, direct) })
			p.Reset()
			require.NoError(t, <-released)
		})
	}
}

func TestAForcedUnlockWhoseConnectionIsClosedSparesTheNextHolder(t *testing.T) {
	t.Parallel()
	where, table := inPq.serve(t), fresh()
	p, db := leasetest.NewProxy(t, where), inPq.open(t, where)
	direct := tableKind.open(t, db, sqllock.WithTable(table)).Mutex("it")
	l := tableKind.open(t, inPq.open(t, p.Addr()), sqllock.WithTable(table)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, direct, a)
	next := tableKind.open(t, db, sqllock.WithTable(table)).Mutex("it")
	owner := ""
	require.NoError(t, db.QueryRow("SELECT owner FROM "+table).Scan(&owner))
	p.DropReply(owner, 1)
	forced := inBackground(func() error {
		_, err := l.ForceUnlock(background)
		return err
	})
	soon(t, func() bool { return p.Drops() == 1 })
	soon(t, func() bool {
		ok, err := next.TryLockContext(b)
		return ok && err == nil
	})
	p.Reset()
	require.ErrorIs(t, <-forced, sqldriver.ErrBadConn, "it may have freed the lock")
	require.NoError(t, next.UnlockContext(b))
}

func TestAnUpdateWhoseConnectionIsClosedIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	where, table := inPq.serve(t), fresh()
	direct := inPq.open(t, where)
	resource(t, direct, table, inPq)
	p := leasetest.NewProxy(t, where)
	columns := sqllock.Columns{Table: table, Key: "id", Value: "n", Version: "version"}
	v, err := sqllock.NewVersioned[int](inPq.open(t, p.Addr()), columns, 1)
	require.NoError(t, err)
	const number = 7654321 // is sent with the update alone
	require.NoError(t, v.Store(background, number-1))
	for i, change := range []func() error{
		func() error {
			_, err := v.Update(background, func(n int) (int, error) { return number, nil })
			return err
		},
		func() error { return v.Store(background, number) },
	} {
		p.DropReply(fmt.Sprint(number), 1)
		changed := inBackground(change)
		versions := func() (n int) {
			require.NoError(t, direct.QueryRow("SELECT version FROM "+table).Scan(&n))
			return n
		}
		soon(t, func() bool { return versions() == i+2 })
		p.Reset()
		require.ErrorIs(t, <-changed, sqldriver.ErrBadConn)
		require.Equal(t, i+2, versions())
	}
}

// A pool does not notice that its idle connections have ended.
func TestAReleaseOutlastsConnectionsThatHaveEnded(t *testing.T) {
	t.Parallel()
	where, table := inPq.serve(t), sqllock.WithTable(fresh())
	p := leasetest.NewProxy(t, where)
	db := inPq.open(t, p.Addr())
	db.SetMaxIdleConns(30)
	direct := tableKind.open(t, inPq.open(t, where), table).Mutex("it")
	locks, err := sqllock.NewTable(db, append(patient(), table)...)
	require.NoError(t, err)
	for _, release := range []func(ctx context.Context) error{
		locks.Mutex("it").UnlockContext, func(context.Context) error { return locks.Close(background) },
	} {
		a := adaptertest.Owner()
		adaptertest.Hold(t, locks.Mutex("it"), a)
		var all []*sql.Conn
		for range 30 {
			c, err := db.Conn(background)
			require.NoError(t, err)
			all = append(all, c)
		}
		for _, c := range all {
			require.NoError(t, c.Close())
		}
		p.Reset()
		soon(t, func() bool { return p.Connections() == 0 })
		require.NoError(t, release(a))
		require.False(t, held(t, direct))
	}
}

func TestAnExtensionThatIsGivenUpKeepsTheSession(t *testing.T) {
	t.Parallel()
	for _, d := range advisory.on {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p, l, direct := proxied(t, advisory, d)
			a := adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			p.Delay(3 * time.Second)
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, h.Extend(ctx, time.Minute), context.DeadlineExceeded)
			p.Heal()
			require.NoError(t, h.Err())
			require.NoError(t, l.UnlockContext(a), "it waits for the session's answer")
			soon(t, func() bool { return !held(t, direct) })
		})
	}
}

func TestAnExtensionThatIsGivenUpKeepsTheLockForNobody(t *testing.T) {
	t.Parallel()
	for _, d := range advisory.on {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p, name := leasetest.NewProxy(t, d.serve(t)), fresh()
			fixed := lease.WithFixedTTL(8 * time.Second)
			a, err := sqllock.NewAdvisory(d.open(t, p.Addr()), patient()...)
			require.NoError(t, err)
			t.Cleanup(func() { a.Close(background) })
			l, owner := a.Mutex(name, fixed), adaptertest.Owner()
			h := adaptertest.Hold(t, l, owner)
			p.Delay(2 * time.Second)
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, h.Extend(ctx, time.Hour), context.DeadlineExceeded)
			p.Heal()
			rival, b := advisory.open(t, d.open(t, d.serve(t))).Mutex(name), adaptertest.Owner()
			adaptertest.Hold(t, rival, b)
			require.ErrorIs(t, h.Err(), locks.ErrLost)
			require.NoError(t, rival.UnlockContext(b))
		})
	}
}

func TestADeadSessionIsTheEndOfNoOtherHold(t *testing.T) {
	t.Parallel()
	for _, d := range advisory.on {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			const ttl = 12 * time.Second
			p := leasetest.NewProxy(t, d.serve(t))
			client := advisory.open(t, d.open(t, p.Addr()), sqllock.WithTTL(ttl))
			t.Cleanup(p.Reset) // lib/pq waits for an answer until its connection ends
			a, b := adaptertest.Owner(), adaptertest.Owner()
			cut, l := client.Mutex(fresh()), client.Mutex(fresh())
			dead, h := adaptertest.Hold(t, cut, a), adaptertest.Hold(t, l, b)
			p.DropReply(word(advisory, d, cut), 1) // and all that follows on its connection
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, dead.Extend(ctx, ttl), context.DeadlineExceeded)
			soon(t, func() bool { return dead.Err() != nil })
			time.Sleep(ttl / 4) // the leases of both began together
			require.NoError(t, h.Err())
			require.NoError(t, l.UnlockContext(b))
		})
	}
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), fresh(), fresh()
		db := d.open(t, where)
		holder := k.open(t, db, sqllock.WithTable(table)).Mutex(name)
		a := adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		var wg sync.WaitGroup
		var pools []*sql.DB
		// A client each, since of one client one goroutine at a time waits for the database.
		for range 10 {
			pool := d.open(t, where)
			pools = append(pools, pool)
			l := k.open(t, pool, sqllock.WithTable(table)).Mutex(name)
			for range 100 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Duration(rand.Int64N(int64(time.Second))))
					defer cancel()
					assert.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
				})
			}
		}
		wg.Wait()
		for _, pool := range pools {
			unpinned(t, pool)
		}
		if k.name == queueKind.name {
			soon(t, func() bool {
				n := -1
				db.QueryRow("SELECT count(*) FROM " + table + "_queue").Scan(&n)
				return n == 0
			}, "places in the queue are left")
		}
		require.NoError(t, holder.UnlockContext(a))
		adaptertest.Hold(t, holder, a)
		require.NoError(t, holder.UnlockContext(a))
	})
}

func TestAHolderWithoutItsRowSparesItsSuccessor(t *testing.T) {
	t.Parallel()
	for _, k := range inTables {
		for _, d := range everywhere {
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, table := d.serve(t), fresh()
				db := d.open(t, where)
				l := k.open(t, db, term(5*short), sqllock.WithTable(table)).Mutex("it")
				rival := k.open(t, d.open(t, where), sqllock.WithTable(table)).Mutex("it")
				a, b := adaptertest.Owner(), adaptertest.Owner()
				h := adaptertest.Hold(t, l, a)
				k.lose(t, d, db, table)
				successor := adaptertest.Hold(t, rival, b)
				require.Greater(t, successor.Token(), h.Token())
				select {
				case <-h.Lost():
				case <-time.After(testbed.Hang):
					t.Fatal("the renewal did not tell")
				}
				require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
				require.True(t, held(t, l))
				require.NoError(t, successor.Err())
				require.NoError(t, rival.UnlockContext(b))
				require.False(t, held(t, l))
			})
		}
	}
}

// doomed is a lock of a session that the test can end.
type doomed struct {
	l, rival *lease.Mutex
	pool     *sql.DB
	store    driver.Store // of l
	end      func()
}

// eachSession runs f for locks of sessions on all servers.
func eachSession(t *testing.T, d time.Duration, f func(t *testing.T, lock doomed)) {
	t.Helper()
	for _, on := range servers {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			where, mark := on.serve(t), fresh()
			// The sessions of the pool are known by their database, or by their name.
			db, to := on.open(t, where), dsn(on.dialect, where)+"&application_name="+mark
			sessions := "SELECT pid FROM pg_stat_activity WHERE application_name = $1"
			if on.dialect == sqllock.MySQL {
				_, err := db.Exec("CREATE DATABASE " + mark)
				require.NoError(t, err)
				to = strings.Replace(dsn(on.dialect, where), "/test", "/"+mark, 1)
				sessions = "SELECT id FROM information_schema.processlist WHERE db = ?"
			}
			pool, err := sql.Open(on.driver, to)
			require.NoError(t, err)
			t.Cleanup(func() { pool.Close() })
			var store driver.Store
			opts := sqllock.WithLeaseOptions(lease.WithTTL(d), lease.WithWrapper(func(s driver.Store) driver.Store {
				store = s
				return s
			}))
			l := advisory.open(t, pool, opts).Mutex(mark)
			f(t, doomed{
				l:     l,
				rival: advisory.open(t, db).Mutex(mark),
				pool:  pool,
				store: store,
				end:   func() { kill(t, on, db, sessions, mark) },
			})
		})
	}
}

func TestAnEndedSessionFreesItsLockAtOnce(t *testing.T) {
	t.Parallel()
	eachSession(t, 20*short, func(t *testing.T, lock doomed) {
		a, b := adaptertest.Owner(), adaptertest.Owner()
		h := adaptertest.Hold(t, lock.l, a)
		require.Equal(t, 1, lock.pool.Stats().InUse, "pinned")
		lock.end()
		adaptertest.Hold(t, lock.rival, b)
		select {
		case <-h.Lost():
		case <-time.After(testbed.Hang):
			t.Fatal("the renewal did not tell")
		}
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, lock.l.UnlockContext(a), locks.ErrLost)
		unpinned(t, lock.pool)
		require.NoError(t, lock.rival.UnlockContext(b))
	})
}

// The server may end a session before the client notices. A repeated request takes the lock then.
func TestARepeatedAcquisitionReplacesAnEndedSession(t *testing.T) {
	t.Parallel()
	eachSession(t, time.Minute, func(t *testing.T, lock doomed) {
		ctx, id := t.Context(), driver.HoldID{Name: lock.l.Name(), Acquisition: "a"}
		acquire := func() bool {
			r, err := lock.store.Acquire(ctx, driver.Request{HoldID: id, TTL: time.Minute})
			return err == nil && r.Held
		}
		require.True(t, acquire())
		lock.end()
		soon(t, acquire, "the lock is free")
		r, err := lock.store.Release(ctx, id)
		require.NoError(t, err)
		require.True(t, r.Held)
		unpinned(t, lock.pool)
	})
}

func TestUnlockOfAnEndedSessionIsALoss(t *testing.T) {
	t.Parallel()
	eachSession(t, time.Minute, func(t *testing.T, lock doomed) {
		a := adaptertest.Owner()
		adaptertest.Hold(t, lock.l, a)
		lock.end()
		adaptertest.Hold(t, lock.rival, a)
		require.ErrorIs(t, lock.l.UnlockContext(a), locks.ErrLost)
		require.NoError(t, lock.rival.UnlockContext(a))
		unpinned(t, lock.pool)
	})
}

func TestDoReturnsTheLossOfAnEndedSession(t *testing.T) {
	t.Parallel()
	eachSession(t, time.Minute, func(t *testing.T, lock doomed) {
		err := locks.Do(adaptertest.Owner(), lock.l, func(context.Context) error {
			lock.end()
			adaptertest.Hold(t, lock.rival, adaptertest.Owner())
			return nil
		})
		require.ErrorIs(t, err, locks.ErrLost)
	})
}

func TestWaitersOnASilentServerReturnInTime(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, k kind, d database) {
		where := d.serve(t)
		p := leasetest.NewProxy(t, where)
		pool := d.open(t, p.Addr())
		pool.SetMaxOpenConns(2)
		brief := sqllock.WithLeaseOptions(lease.WithReleaseTimeout(time.Second))
		const limit = 2 * testbed.Hang // of a request
		c := k.open(t, pool, sqllock.WithTable(fresh()), sqllock.WithRequestTimeout(limit), brief)
		p.Cut()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(adaptertest.Owner(), 300*time.Millisecond)
				defer cancel()
				began := time.Now()
				assert.ErrorIs(t, c.Mutex(fresh()).LockContext(ctx), context.DeadlineExceeded)
				assert.Less(t, time.Since(began), limit/2, "sooner than a request's end")
			})
		}
		wg.Wait()
		p.Heal()
		p.Reset()
		// Until now what they may have left behind was looked for, in vain.
		unpinned(t, pool)
		l, a := k.open(t, pool, sqllock.WithTable(fresh())).Mutex(fresh()), adaptertest.Owner()
		soon(t, func() bool { return l.LockContext(a) == nil })
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAnExhaustedPoolBecomesAnError(t *testing.T) {
	t.Parallel()
	where := inSQLite.serve(t)
	db := inSQLite.open(t, where)
	brief := sqllock.WithLeaseOptions(lease.WithReleaseTimeout(100 * time.Millisecond))
	l := tableKind.open(t, db, swift, brief).Mutex("it")
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(background)
	require.NoError(t, err)
	err = l.LockContext(background)
	require.ErrorIs(t, err, sqllock.ErrTimeout)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, conn.Close())
	require.False(t, held(t, tableKind.open(t, db).Mutex("it")))
}

func TestHoldsOfOneOwnerAreCounted(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		l := k.open(t, d.open(t, where), table).Mutex(name)
		rival := k.open(t, d.open(t, where), table).Mutex(name)
		a, b := adaptertest.Owner(), adaptertest.Owner()
		adaptertest.Hold(t, l, a)
		adaptertest.Hold(t, l, a)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, l.UnlockContext(a)) })
		wg.Wait()
		require.True(t, held(t, rival))
		require.NoError(t, l.UnlockContext(a))
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		adaptertest.Hold(t, rival, b)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		require.True(t, held(t, l))
		require.NoError(t, rival.UnlockContext(b))
	})
}

func TestCloseEndsHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, one, two := d.serve(t), sqllock.WithTable(fresh()), fresh(), fresh()
		pool := d.open(t, where)
		c := k.open(t, pool, table)
		rival := k.open(t, d.open(t, where), table)
		b := adaptertest.Owner()
		h := adaptertest.Hold(t, c.Mutex(one), adaptertest.Owner())
		adaptertest.Hold(t, rival.Mutex(two), b)
		var wg sync.WaitGroup
		for _, name := range []string{one, two} {
			for range 3 {
				wg.Go(func() { assert.ErrorIs(t, c.Mutex(name).LockContext(adaptertest.Owner()), locks.ErrClosed) })
			}
		}
		soon(t, func() bool { return c.Mutex(one).QueueLength() == 3 })
		require.NoError(t, c.Close(background))
		wg.Wait()
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, c.Mutex(one).LockContext(adaptertest.Owner()), locks.ErrClosed)
		require.Zero(t, pool.Stats().InUse, "Close waits for connections")
		require.NoError(t, rival.Mutex(two).UnlockContext(b))
		require.False(t, held(t, rival.Mutex(one)))
		require.NoError(t, c.Close(background), "again")
	})
}
