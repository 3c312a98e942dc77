package sqllock_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

// counted counts the statements of a client that have been answered.
type counted struct {
	mu   sync.Mutex
	sent []string
}

type sqlKey struct{}

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sqlKey{}, strings.Join(strings.Fields(d.SQL), " "))
}

func (c *counted) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	text := ctx.Value(sqlKey{}).(string)
	if strings.Contains(text, "_clients") || strings.HasSuffix(text, "AND NOT granted") {
		return // the client announces itself at any time, and looks after a waiter that waits for long
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, text)
}

// statements returns the statements since the last call of forget.
func (c *counted) statements() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[:len(c.sent):len(c.sent)]
}

func (c *counted) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = nil
}

// countedClient is a client of its own with a lock called "it".
type countedClient struct {
	*counted
	*lease.Mutex
}

// openCounted returns a client whose waiters ask only when they are told. It listens.
func (k kind) openCounted(t *testing.T, where string, opts ...sqllock.Option) countedClient {
	t.Helper()
	c := countedClient{counted: new(counted)}
	db := c.open(t, where, "counted")
	ready, listen := make(chan struct{}), pgxnotify.Listener(db)
	listener := func(ctx context.Context, channel string, begins func(), notify func(payload string)) error {
		return listen(ctx, channel, func() { begins(); close(ready) }, notify)
	}
	all := slices.Concat(rarely, []sqllock.Option{sqllock.WithListener(listener), term(time.Hour)}, opts)
	a := adaptertest.Owner()
	// A client that does not listen makes the row of the lock, and tells nobody of its release.
	quiet := k.open(t, db, slices.Concat(rarely, opts)...).Mutex("it")
	adaptertest.Hold(t, quiet, a)
	require.NoError(t, quiet.UnlockContext(a))
	client := k.open(t, db, all...)
	// The client listens from its first hold on. Its first hold is of another lock: a late
	// notification of the release would make a waiter of "it" ask once more.
	first := client.Mutex("the first")
	adaptertest.Hold(t, first, a)
	<-ready
	require.NoError(t, first.UnlockContext(a))
	c.Mutex = client.Mutex("it")
	c.forget()
	return c
}

// open returns a pool whose statements are counted, and whose sessions have a name.
func (c *counted) open(t *testing.T, where, name string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(dsn(sqllock.Postgres, where))
	require.NoError(t, err)
	config.Tracer, config.RuntimeParams["application_name"] = c, name
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	return db
}

// waiting begins to acquire the lock, and returns when the client has asked by n statements.
func (c countedClient) waiting(t *testing.T, ctx context.Context, n int) <-chan error {
	t.Helper()
	got := inBackground(func() error { return c.LockContext(ctx) })
	soon(t, func() bool { return len(c.statements()) == n })
	return got
}

func TestAReleaseMakesOnlyAQueuesFirstAsk(t *testing.T) {
	t.Parallel()
	where, table := inPgx.serve(t), sqllock.WithTable(fresh())
	var clients []countedClient
	for range 5 {
		clients = append(clients, queueKind.openCounted(t, where, table))
	}
	a := adaptertest.Owner()
	adaptertest.Hold(t, clients[0].Mutex, a)
	var got []<-chan error
	for _, c := range clients[1:] {
		got = append(got, c.waiting(t, a, 1))
	}
	require.NoError(t, clients[0].UnlockContext(a))
	require.Len(t, clients[0].statements(), 2)
	for i, c := range clients[1:] {
		require.NoError(t, <-got[i])
		require.NoError(t, c.UnlockContext(a))
	}
	for _, c := range clients[1:] {
		require.Len(t, c.statements(), 3) // enqueued, granted, released
	}
}

func TestAWaiterInVainAsksByOneStatement(t *testing.T) {
	t.Parallel()
	where, table := inPgx.serve(t), sqllock.WithTable(fresh())
	var clients [3]countedClient
	for i := range clients {
		clients[i] = tableKind.openCounted(t, where, table)
	}
	a := adaptertest.Owner()
	adaptertest.Hold(t, clients[0].Mutex, a)
	const first = 3 // refused, by whom, and once more when it listens
	one, two := clients[1].waiting(t, a, first), clients[2].waiting(t, a, first)
	require.NoError(t, clients[0].UnlockContext(a))
	winner, loser := clients[1], clients[2]
	select {
	case err := <-one:
		require.NoError(t, err)
	case err := <-two:
		require.NoError(t, err)
		winner, loser, two = loser, winner, one
	}
	soon(t, func() bool { return len(loser.statements()) == first+1 })
	require.NoError(t, winner.UnlockContext(a))
	require.NoError(t, <-two)
	require.NoError(t, loser.UnlockContext(a))
	require.Len(t, winner.statements(), first+2)
	require.Len(t, loser.statements(), first+3)
}

func TestAWaiterFindsAGrantThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			open := func() *lease.Mutex {
				return queueKind.open(t, d.open(t, where), sqllock.WithTable(table), term(time.Hour)).Mutex("it")
			}
			holder, l := open(), open()
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, holder, a)
			got := inBackground(func() error { return l.LockContext(b) })
			soon(t, func() bool { return queued(db, table) == 1 })
			tx, err := db.Begin()
			require.NoError(t, err)
			defer tx.Rollback()
			_, err = tx.Exec("UPDATE " + table + " SET owner = (SELECT owner FROM " + table + "_queue), token = 7")
			require.NoError(t, err)
			_, err = tx.Exec("DELETE FROM " + table + "_queue")
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			require.NoError(t, <-got)
			h, err := l.Hold(b)
			require.NoError(t, err)
			require.EqualValues(t, 7, h.Token())
			require.NoError(t, l.UnlockContext(b))
			require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
		})
	}
}
