package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// complaint is the error of a driver that tells the database's code, as the drivers of PostgreSQL,
// of MySQL and of SQLite do.
type complaint struct {
	state  string
	Number uint16
	code   int
	text   string
}

func (c complaint) Error() string {
	return fmt.Sprintf("complaint %s %d %d: %s", c.state, c.Number, c.code, c.text)
}

func (c complaint) SQLState() string { return c.state }

func (c complaint) Code() int { return c.code }

// mood replaces each answer of a database to a statement, or to a login, unless it is nil.
type mood = adaptertest.Refuser[error]

// moody connects to a database that has moods.
type moody struct {
	driver driver.Driver
	dsn    string
	mood   *mood // of statements
	login  *mood
}

func (m moody) Connect(context.Context) (driver.Conn, error) {
	if err := m.login.Answer(); err != nil {
		return nil, err
	}
	c, err := m.driver.Open(m.dsn)
	return moodyConn{c, m.mood}, err
}

func (m moody) Driver() driver.Driver { return m.driver }

type moodyConn struct {
	driver.Conn
	mood *mood
}

func (c moodyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.mood.Answer(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c moodyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.mood.Answer(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c moodyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.mood.Answer(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

// reaction is the reaction of a client to an error of a class. Without goesOn the client returns
// the error.
type reaction struct {
	is            error // what the error of a first request matches
	certain       bool  // that the request was not carried out
	firstGoesOn   bool
	waitGoesOn    bool
	releaseGoesOn bool // until the error ends, or the release timeout
	final         bool // the release is not repeated
}

// reactions are the reactions of a Table.
var reactions = map[classes.Class]reaction{
	classes.Unclear:     {nil, false, false, true, true, false},
	classes.Doubt:       {lease.ErrUnavailable, false, true, true, true, false},
	sqllock.Interrupted: {lease.ErrUnavailable, false, true, true, true, false},
	classes.Request:     {lease.ErrRefused, true, false, false, false, false},
	classes.Connection:  {lease.ErrLogin, true, false, true, false, false},
	classes.Moment:      {lease.ErrUnavailable, true, true, true, true, false},
	classes.Unreached:   {lease.ErrUnreachable, true, false, true, true, false},
	sqllock.Busy:        {lease.ErrUnavailable, true, true, true, true, false},
	sqllock.Missing:     {sqllock.ErrNoTable, true, false, false, false, false},
	sqllock.Foreign:     {locks.ErrForeign, false, false, false, false, true},
}

// classed is an error of a database with its class.
type classed struct {
	name  string
	err   error
	class classes.Class
}

// unreachable is the error of a connection that could not be made.
var unreachable = classed{"no connection", &net.OpError{Op: "dial", Err: errors.New("refused")}, classes.Unreached}

// complaints are the errors of a database: all that are listed, or one of each class.
func complaints(d sqllock.Dialect, all bool) (list []classed) {
	add := func(name string, why error, class classes.Class) { list = append(list, classed{name, why, class}) }
	switch d {
	case sqllock.Postgres:
		for _, r := range sqllock.OfPostgres {
			state := r.State + "00000"[len(r.State):]
			add(state+" "+r.Text, complaint{state: state, text: r.Text}, r.Class)
		}
	case sqllock.MySQL:
		for _, r := range sqllock.OfMySQL {
			n := r.Numbers[0] // the others have this entry too
			add(strconv.Itoa(int(n)), complaint{Number: uint16(n)}, r.Class)
		}
		add("a missing privilege", complaint{Number: 1142}, classes.Request) // is not listed
	case sqllock.SQLite:
		for _, r := range sqllock.OfSQLite {
			add(strconv.Itoa(r.Code), complaint{code: r.Code}, r.Class)
		}
		add("no such table", complaint{code: 1, text: "no such table: x"}, sqllock.Missing)
		add("a failing lock", complaint{code: 12}, classes.Unclear) // is not listed
	}
	if d != sqllock.SQLite {
		list = append(list, unreachable)
	}
	if all {
		return list
	}
	return adaptertest.OneOfEach(list, func(c classed) classes.Class { return c.class })
}

// inEachMood runs f for errors of the databases: for each known error, or for one error of each
// class. The client c of the kind has made a connection. rival is another client.
func inEachMood(t *testing.T, k kind, on []database, all bool, opts []sqllock.Option,
	f func(t *testing.T, m *mood, c, rival provider, why classed)) {
	inMoods(t, k, on, func(d database) []classed {
		return complaints(d.dialect, all && d.driver != inPq.driver) // pq has the codes of pgx
	}, func(m *mood) (moody, int) { return moody{mood: m, login: new(mood)}, 2 }, opts, f)
}

// inMoods runs f for errors. open returns the server of a mood, and how many idle connections the
// client's pool keeps.
func inMoods(t *testing.T, k kind, on []database, errs func(database) []classed, open func(*mood) (moody, int),
	opts []sqllock.Option, f func(t *testing.T, m *mood, c, rival provider, why classed)) {
	t.Parallel()
	for _, d := range on {
		where, table := d.serve(t), sqllock.WithTable(fresh())
		rival := k.open(t, d.open(t, where), table)
		room := make(chan struct{}, 8)
		for _, why := range errs(d) {
			t.Run(d.name+" "+why.name, func(t *testing.T) {
				t.Parallel()
				room <- struct{}{}
				defer func() { <-room }()
				where, rival := where, rival
				if d.dialect == sqllock.SQLite { // a file has one writer at a time
					where = d.serve(t)
					rival = k.open(t, d.open(t, where), table)
				}
				m := new(mood)
				server, idle := open(m)
				server.driver, server.dsn = d.open(t, where).Driver(), dsn(d.dialect, where)
				db := sql.OpenDB(server)
				t.Cleanup(func() { db.Close() })
				db.SetMaxIdleConns(idle)
				all := append(patient(), table, sqllock.WithDialect(d.dialect), term(time.Hour))
				c, err := k.make(db, append(all, opts...)...)
				require.NoError(t, err)
				t.Cleanup(func() { m.Refuse(nil); c.Close(background) })
				require.False(t, held(t, c.Mutex(fresh())))
				f(t, m, c, rival, why)
			})
		}
	}
}

var classedDatabases = []database{inSQLite, inPgx, inPq, inMaria}

func TestAFirstRequestFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, tableKind, classedDatabases, true, nil,
		func(t *testing.T, m *mood, c, _ provider, why classed) { first(t, m, c, why, reactions[why.class]) })
}

func first(t *testing.T, m *mood, c provider, why classed, want reaction) {
	t.Helper()
	ctx, cancel := context.WithTimeout(adaptertest.Owner(), testbed.Hang)
	defer cancel()
	l := c.Mutex(fresh())
	m.Refuse(why.err)
	got := inBackground(func() error { return l.LockContext(ctx) })
	if want.firstGoesOn {
		m.Refuses(t, 2)
		m.Refuse(nil)
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(ctx))
		return
	}
	err := <-got
	require.ErrorContains(t, err, why.err.Error())
	if want.is != nil {
		require.ErrorIs(t, err, want.is)
	}
	require.Equal(t, why.class == classes.Connection, errors.Is(err, lease.ErrLogin), "%v", err)
	require.Equal(t, want.certain, errors.Is(err, lease.ErrRefused), "%v", err)
	m.Refuse(nil)
}

func TestAWaitFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, tableKind, classedDatabases, true, nil,
		func(t *testing.T, m *mood, c, rival provider, why classed) {
			await(t, m, c, rival, why, reactions[why.class])
		})
}

func await(t *testing.T, m *mood, c, rival provider, why classed, want reaction) {
	t.Helper()
	name, a, b := fresh(), adaptertest.Owner(), adaptertest.Owner()
	holder, l := rival.Mutex(name), c.Mutex(name)
	adaptertest.Hold(t, holder, a)
	got := inBackground(func() error { return l.LockContext(b) })
	m.Asks(t, 16)
	m.Refuse(why.err)
	if !want.waitGoesOn {
		require.ErrorContains(t, <-got, why.err.Error())
		m.Refuse(nil)
		require.NoError(t, holder.UnlockContext(a))
		return
	}
	m.Refuses(t, 2)
	m.Refuse(nil)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(b))
}

func TestNoErrorOfARenewalIsALoss(t *testing.T) {
	inEachMood(t, tableKind, classedDatabases, true, []sqllock.Option{term(6 * time.Second)},
		func(t *testing.T, m *mood, c, _ provider, why classed) { renew(t, m, c, why) })
}

func renew(t *testing.T, m *mood, c provider, why classed) {
	t.Helper()
	l, a := c.Mutex(fresh()), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	before, _ := h.Deadline()
	m.Refuse(why.err)
	m.Refuses(t, 1)
	m.Refuse(nil)
	soon(t, func() bool { now, _ := h.Deadline(); return now.After(before) })
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
}

func TestAReleaseFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, tableKind, classedDatabases, true, nil,
		func(t *testing.T, m *mood, c, rival provider, why classed) {
			release(t, m, c, rival, why, reactions[why.class])
		})
}

func release(t *testing.T, m *mood, c, rival provider, why classed, want reaction) {
	t.Helper()
	name, a := fresh(), adaptertest.Owner()
	l := c.Mutex(name)
	adaptertest.Hold(t, l, a)
	m.Refuse(why.err)
	got := inBackground(func() error { return l.UnlockContext(a) })
	if want.releaseGoesOn {
		m.Refuses(t, 2)
		m.Refuse(nil)
		require.NoError(t, <-got)
	} else {
		err := <-got
		require.ErrorIs(t, err, locks.ErrLost)
		m.Refuse(nil)
	}
	if !want.final {
		soon(t, func() bool { return !held(t, rival.Mutex(name)) }, "long before the end of the lease")
	}
}

// firstWaitAndRelease meets an error at a first request, at a wait and at a release.
func firstWaitAndRelease(t *testing.T, m *mood, c, rival provider, why classed) {
	want := reactions[why.class]
	first(t, m, c, why, want)
	await(t, m, c, rival, why, want)
	release(t, m, c, rival, why, want)
}

func TestAQueueFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, queueKind, classedDatabases, false, nil, firstWaitAndRelease)
}

func TestASemaphoreFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, permitKind, classedDatabases, false, nil, firstWaitAndRelease)
}

func TestNoErrorOfARenewalLosesPermits(t *testing.T) {
	inEachMood(t, permitKind, classedDatabases, false, []sqllock.Option{term(6 * time.Second)},
		func(t *testing.T, m *mood, c, _ provider, why classed) { renew(t, m, c, why) })
}

// A session takes its lock with it. So nothing is in doubt, and no release is left to be repeated.
func TestASessionFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, advisory, []database{inPgx, inPq, inMaria}, false, []sqllock.Option{term(6 * time.Second)},
		func(t *testing.T, m *mood, c, rival provider, why classed) {
			want := reactions[why.class]
			want.certain = true
			if why.class == classes.Unclear {
				want.is = lease.ErrUnreachable
			}
			if why.class == sqllock.Foreign {
				want.is = lease.ErrRefused
			}
			first(t, m, c, why, want)
			await(t, m, c, rival, why, want)
			switch why.class {
			case sqllock.Interrupted, classes.Request, classes.Moment, sqllock.Busy:
				renew(t, m, c, why) // the session goes on
			}
			want.final = false
			switch why.class {
			case sqllock.Interrupted, classes.Moment, sqllock.Busy:
			default:
				want.releaseGoesOn = false
			}
			release(t, m, c, rival, why, want)
		})
}

func TestWorkFollowsTheClassOfAnError(t *testing.T) {
	t.Parallel()
	for _, d := range []database{inPgx, inPq, inMaria} {
		where, table := d.serve(t), sqllock.WithTable(fresh())
		rival := openRow(t, d.open(t, where), table)
		for _, why := range complaints(d.dialect, false) {
			t.Run(d.name+" "+why.name, func(t *testing.T) {
				t.Parallel()
				m, want := new(mood), reactions[why.class]
				db := sql.OpenDB(moody{d.open(t, where).Driver(), dsn(d.dialect, where), m, new(mood)})
				t.Cleanup(func() { db.Close() })
				r, err := sqllock.NewRow(db, append(patient(), table, sqllock.WithDialect(d.dialect))...)
				require.NoError(t, err)
				t.Cleanup(func() { r.Close(background) })
				require.NoError(t, r.Do(background, "warm", nothing))
				for _, waits := range []bool{false, true} {
					name, end := fresh(), func() {}
					if waits {
						end = work(t, rival, adaptertest.Owner(), name)
					} else {
						m.Refuse(why.err)
					}
					got := inBackground(func() error { return r.Do(adaptertest.Owner(), name, nothing) })
					if waits {
						soon(t, refused(r, name))
						m.Refuse(why.err)
					}
					if waits && want.waitGoesOn || !waits && want.firstGoesOn {
						m.Refuses(t, 2)
						m.Refuse(nil)
						end()
						require.NoError(t, <-got)
						continue
					}
					err := <-got
					require.ErrorContains(t, err, why.err.Error())
					if want.is != nil {
						require.ErrorIs(t, err, want.is)
					}
					m.Refuse(nil)
					end()
				}
			})
		}
	}
}

// atLogin returns errors that answer a login: one of each class. Of MySQL and SQLite it returns
// each error that refuses the login, the server or this moment.
func atLogin(d database) (list []classed) {
	one := complaints(d.dialect, false)
	for _, why := range complaints(d.dialect, true) {
		switch why.class {
		case sqllock.Missing, sqllock.Foreign: // are about tables
			continue
		case classes.Connection, classes.Moment, classes.Doubt:
			if d.dialect != sqllock.Postgres {
				list = append(list, why)
				continue
			}
		}
		if slices.Contains(one, why) {
			list = append(list, why)
		}
	}
	return list
}

// loginsOf are servers that refuse logins. Each request logs in.
func loginsOf(m *mood) (moody, int) { return moody{mood: new(mood), login: m}, -1 }

func TestALoginFollowsTheClassOfAnError(t *testing.T) {
	inMoods(t, tableKind, []database{inSQLite, inPgx, inMaria}, atLogin, loginsOf, nil, firstWaitAndRelease)
}

func TestNoErrorOfALoginIsALoss(t *testing.T) {
	oneOfEach := func(d database) []classed { return complaints(d.dialect, false) }
	inMoods(t, tableKind, classedDatabases, oneOfEach, loginsOf, []sqllock.Option{term(6 * time.Second)},
		func(t *testing.T, m *mood, c, _ provider, why classed) { renew(t, m, c, why) })
}

func TestALoginThatADriverRefusesFollowsItsClass(t *testing.T) {
	ofDrivers := func(database) (list []classed) {
		for _, r := range sqllock.OfDrivers {
			list = append(list, classed{r.Code, errors.New("driver: " + r.Code), r.Class})
		}
		return list
	}
	inMoods(t, tableKind, []database{inPq, inMaria}, ofDrivers, loginsOf, nil, firstWaitAndRelease)
}

func TestAServerWithoutTLSIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database
		with string
	}{{inPgx, "sslmode=require"}, {inPq, "sslmode=require"}, {inMaria, "tls=true"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := strings.NewReplacer("sslmode=disable", c.with, "/test?", "/test?"+c.with+"&").Replace(
				dsn(c.dialect, c.serve(t)))
			db, err := sql.Open(c.driver, at)
			require.NoError(t, err)
			t.Cleanup(func() { db.Close() })
			table, err := sqllock.NewTable(db, patient()...)
			require.NoError(t, err)
			t.Cleanup(func() { table.Close(background) })
			err = table.Mutex("it").LockContext(adaptertest.Owner())
			require.ErrorIs(t, err, lease.ErrUnreachable)
			require.ErrorIs(t, err, lease.ErrRefused)
		})
	}
}

// A session that has its lock logs in no more.
func TestALoginOfASessionFollowsTheClassOfAnError(t *testing.T) {
	inMoods(t, advisory, []database{inPgx, inMaria}, atLogin, loginsOf, nil,
		func(t *testing.T, m *mood, c, rival provider, why classed) {
			want := reactions[why.class]
			want.certain = true
			if why.class == classes.Unclear {
				want.is = lease.ErrUnreachable
			}
			first(t, m, c, why, want)
			await(t, m, c, rival, why, want)
			l, a := c.Mutex(fresh()), adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			m.Refuse(why.err)
			require.NoError(t, h.Extend(a, time.Minute))
			require.NoError(t, l.UnlockContext(a))
			m.Refuse(nil)
		})
}

func TestEveryClassOfSQLStatesIsListedOrRefused(t *testing.T) {
	t.Parallel()
	known := func(state string) bool {
		for _, r := range sqllock.OfPostgres {
			if strings.HasPrefix(state, r.State) {
				return true
			}
		}
		return false
	}
	for _, class := range strings.Fields("08 0P 21 22 23 26 28 3D 40 42 44 53 57 58 72 F0 HV XX") {
		require.True(t, known(class+"000"), class)
	}
	for _, class := range strings.Fields("03 09 0A 0B 0F 0L 0Z 20 24 25 27 2B 2D 2F 34 38 39 3B 3F 54 55 P0") {
		require.Equal(t, classes.Request, sqllock.ClassOfState(class+"000", ""), class)
	}
}

func TestEveryRefusalHasOneReasonAndOneEntry(t *testing.T) {
	t.Parallel()
	reason := regexp.MustCompile(`^[^.\n]{8,90}$`)
	seen := make(map[string]bool)
	once := func(name, why string) {
		require.False(t, seen[name], name)
		seen[name] = true
		require.Regexp(t, reason, why, name)
	}
	for _, r := range sqllock.OfPostgres {
		once("state "+r.State+r.Text, r.Why)
		state := r.State + "00000"[len(r.State):]
		require.Equal(t, r.Class, sqllock.ClassOfState(state, r.Text), "%s is hidden by another entry", r.State)
	}
	for _, r := range sqllock.OfMySQL {
		for _, n := range r.Numbers {
			once(fmt.Sprint("number ", n), r.Why)
			require.Equal(t, r.Class, sqllock.ClassOfNumber(n), n)
		}
	}
	for _, r := range sqllock.OfSQLite {
		once(fmt.Sprint("code ", r.Code), r.Why)
	}
	for _, r := range sqllock.OfDrivers {
		once(r.Code, r.Why)
	}
}
