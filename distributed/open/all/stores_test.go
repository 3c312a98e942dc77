package all_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

// secure switches on the passwords of an etcd server, when it answers.
func secure(tb testing.TB, addr string) {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	require.NoError(tb, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testbed.Hang)
	defer cancel()
	for _, user := range []string{"root", "locks-user"} {
		_, err := c.UserAdd(ctx, user, password)
		require.NoError(tb, err)
		_, err = c.UserGrantRole(ctx, user, "root")
		require.NoError(tb, err)
	}
	_, err = c.AuthEnable(ctx)
	require.NoError(tb, err)
}

func someone() context.Context { return locks.WithOwner(context.Background(), locks.NewOwner()) }

func TestEveryStore(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			at := p.start(t)
			for kind := range strings.FieldsSeq(p.kinds) {
				t.Run(kind, func(t *testing.T) { p.excludes(t, at+"&kind="+kind, kind) })
			}
			if u, query, _ := strings.Cut(at, "?"); strings.Contains(query, "cacert=") {
				t.Run("refuses another authority", func(t *testing.T) {
					params, err := url.ParseQuery(query)
					require.NoError(t, err)
					another, _, _ := testbed.Certificate(t, "localhost")
					params.Set("cacert", another)
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // ZooKeeper and etcd try again
					defer cancel()
					_, err = open.URL(ctx, u+"?"+params.Encode())
					require.ErrorIs(t, err, open.ErrUnreachable)
				})
			}
			if p.wrong != nil {
				t.Run("hides a wrong user", func(t *testing.T) {
					text := p.wrong(at)
					_, err := open.URL(t.Context(), text)
					require.Error(t, err)
					require.NotErrorIs(t, err, open.ErrURL)
					require.NotErrorIs(t, err, open.ErrUnreachable)
					for e := err; e != nil; e = errors.Unwrap(e) {
						require.NotRegexp(t, `other-user|not.the.password`, e.Error())
					}
				})
			}
		})
	}
}

// excludes checks that a lock of one kind excludes between two providers.
func (p place) excludes(t *testing.T, url, kind string) {
	has := func(list string) bool { return slices.Contains(strings.Fields(list), kind) }
	a := opened(t, url, open.WithLabel("first"))
	b := a
	if p.name != "mem" {
		b = opened(t, url, open.WithLabel("second"), open.WithTTL(20*time.Second))
	}
	ctx, other := someone(), someone()
	first, second := a.Locker("or/ders"), b.Locker("or/ders")
	require.NoError(t, first.LockContext(ctx))
	ok, err := second.TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	info, err := second.(locks.Inspector).Inspect(ctx)
	require.NoError(t, err)
	require.True(t, info.Held)
	if p.name != "mem" && p.name != "file" && kind != "advisory" {
		require.Eventually(t, func() bool { // a process introduces itself in the background
			info, err := second.(locks.Inspector).Inspect(ctx)
			return err == nil && len(info.Holders) == 1 && info.Holders[0].Label == "first"
		}, time.Minute, 10*time.Millisecond)
	}
	if l, ok := first.(locks.Leased); ok {
		hold, err := l.Hold(ctx)
		require.NoError(t, err)
		require.Equal(t, has(p.tokens), hold.Token() > 0)
	} else {
		require.Equal(t, "mem", p.name)
	}
	require.NoError(t, first.UnlockContext(ctx))
	require.NoError(t, second.LockContext(other))
	require.NoError(t, second.UnlockContext(other))

	p.lists(t, a, b, has(p.listed))
	p.forces(t, a, b, has(p.forced))

	require.NoError(t, a.Close(ctx))
	require.NoError(t, a.Close(ctx), "only the first call does anything")
	if p.name != "mem" {
		require.ErrorIs(t, first.LockContext(ctx), locks.ErrClosed)
	}
}

// lists checks the names of locks that the other provider holds.
func (p place) lists(t *testing.T, a, b *open.Client, can bool) {
	ctx := someone()
	if !can {
		_, err := b.Names(ctx, "")
		require.ErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	all := []string{"50%", "a[b]c", "a{b}c", "team/nightly", "team/weekly", "x*y", "x1y"}
	for _, name := range all {
		require.NoError(t, a.Locker(name).LockContext(ctx))
	}
	kept := []string{"file", "consul", "nats", "s3", "gs", "dynamodb", "kubernetes"} // of all locks that were ever used
	stay := slices.Contains(kept, strings.Fields(p.name)[0])
	if stay {
		all = append(all[:3:3], append([]string{"or/ders"}, all[3:]...)...)
	}
	for pattern, want := range map[string][]string{
		"":          all,
		"team/*":    {"team/nightly", "team/weekly"},
		"x\\*y":     {"x*y"},
		"x?y":       {"x*y", "x1y"},
		"a\\[b\\]c": {"a[b]c"},
		"5*":        {"50%"},
		"none":      nil,
	} {
		names, err := b.Names(t.Context(), pattern)
		require.NoError(t, err)
		require.Equal(t, want, names, pattern)
	}
	_, err := b.Names(t.Context(), "[")
	require.ErrorIs(t, err, path.ErrBadPattern)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Names(ended, "")
	require.ErrorIs(t, err, context.Canceled)
	for _, name := range all {
		if name != "or/ders" {
			require.NoError(t, a.Locker(name).UnlockContext(ctx))
		}
	}
	if !stay {
		names, err := b.Names(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, names, "nobody holds a lock")
	}
}

// forces checks that a lock can be freed although the other provider holds it.
func (p place) forces(t *testing.T, a, b *open.Client, can bool) {
	ctx, other := someone(), someone()
	if !can {
		_, err := b.ForceUnlock(ctx, "stuck")
		require.ErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	was, err := b.ForceUnlock(ctx, "stuck")
	require.NoError(t, err)
	require.False(t, was)
	stuck := a.Locker("stuck").(locks.Leased)
	require.NoError(t, stuck.LockContext(ctx))
	hold, err := stuck.Hold(ctx)
	require.NoError(t, err)
	was, err = b.ForceUnlock(ctx, "stuck")
	require.NoError(t, err)
	require.True(t, was)
	free := b.Locker("stuck").(locks.Leased)
	require.NoError(t, free.LockContext(other))
	next, err := free.Hold(other)
	require.NoError(t, err)
	if hold.Token() > 0 {
		require.Greater(t, next.Token(), hold.Token())
	}
	require.ErrorIs(t, stuck.UnlockContext(ctx), locks.ErrLost)
	require.NoError(t, next.Err(), "the former holder does not free the lock of its successor")
	require.NoError(t, free.UnlockContext(other))
}

// silent returns the address of a server that never answers. It calls f when it has a connection.
func silent(t *testing.T, f func()) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			f()
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// atServers has a URL for an address of each scheme that has servers.
func atServers(addr string) []string {
	var urls []string
	for _, form := range []string{
		"postgres://user:geheim@ADDR/db", "mysql://user:geheim@ADDR/db", "redis://user:geheim@ADDR",
		"rediss://user:geheim@ADDR", "redis+sentinel://user:geheim@ADDR?master=it", "redis+cluster://user:geheim@ADDR",
		"zk://user:geheim@ADDR", "etcd://user:geheim@ADDR", "etcd://ADDR", "nats://user:geheim@ADDR/b",
		"consul://:geheim@ADDR",
		"s3://user:geheim@bucket?endpoint=http://ADDR",
		"dynamodb://user:geheim@ADDR", "gs://bucket?endpoint=http://ADDR",
	} {
		urls = append(urls, strings.ReplaceAll(form, "ADDR", addr))
	}
	return urls
}

func TestAClosedPortIsUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	l.Close()
	for _, url := range atServers(closed) {
		scheme, _, _ := strings.Cut(url, ":")
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			// ZooKeeper and etcd try again until the context ends.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := open.URL(ctx, url)
			require.ErrorIs(t, err, open.ErrUnreachable)
			require.NotErrorIs(t, err, open.ErrURL)
			require.Equal(t, ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), err)
			reveals(t, err, url)
			require.NotContains(t, err.Error(), "user")
			require.Contains(t, err.Error(), closed)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for _, url := range []string{"file:/dev/null/x", "sqlite:/dev/null/x"} {
		_, err := open.URL(t.Context(), url)
		require.ErrorIs(t, err, open.ErrUnreachable)
		require.NotErrorIs(t, err, open.ErrURL)
	}
}

func TestTheEndOfTheContextEndsTheOpening(t *testing.T) {
	why := errors.New("no more")
	for i, url := range atServers("") {
		scheme, _, _ := strings.Cut(url, ":")
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			patient, end := context.WithTimeout(t.Context(), time.Hour) // in place of DefaultTimeout
			defer end()
			ctx, cancel := context.WithCancelCause(patient)
			url := atServers(silent(t, func() { cancel(why) }))[i]
			began := time.Now()
			_, err := open.URL(ctx, url)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, open.ErrUnreachable)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(began), testbed.Hang)
			reveals(t, err, url)
		})
	}
}

func TestAnEndedContextDoesNotEndTheStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := open.URL(ctx, "sqlite:"+t.TempDir()+"/db")
	require.NoError(t, err)
	cancel()
	require.NoError(t, s.Locker("orders").LockContext(t.Context()))
	require.NoError(t, s.Close(t.Context()))
}
