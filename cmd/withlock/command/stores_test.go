//go:build unix

package command

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

// ttl is the lease where a test waits for its end, and longTTL where it must not end.
const (
	ttl     = "2s"
	longTTL = "12s"
)

func serving(t *testing.T, url string) string {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := open.URL(t.Context(), url)
		if err == nil {
			s.Close(t.Context())
		}
		return err == nil
	}, hang, 20*time.Millisecond, url)
	return url
}

func local(t *testing.T) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(testbed.Port(t))) }

func redisCommand(t *testing.T, addr, dir string) *exec.Cmd {
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return exec.Command(testbed.Lookup(t, "redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--dir", dir, "--logfile", filepath.Join(dir, "log"))
}

// stores are the stores of which each test uses one server.
var stores = []struct {
	name   string
	leased bool // the store frees the lock of a stopped holder, and withlock can free it by force
	start  func(t *testing.T) (url string, restart func())
}{
	{"file", false, func(t *testing.T) (string, func()) { return fileStore(t) + "?kind=fenced", nil }},
	{"sqlite", true, func(t *testing.T) (string, func()) {
		return "sqlite:" + filepath.Join(t.TempDir(), "locks.db"), nil
	}},
	{"redis", true, func(t *testing.T) (string, func()) { return redisStore(t), nil }},
	{"postgres", true, func(t *testing.T) (url string, restart func()) {
		server := testbed.StartPostgres(t, func(addr string) error {
			url = "postgres://postgres@" + addr + "/postgres?sslmode=disable"
			return answers(t, "pgx", url)
		})
		return url, server.Restart
	}},
	{"pgbouncer", true, func(t *testing.T) (string, func()) { return pooler(t) + "&listen=false", nil }},
	{"mysql", true, func(t *testing.T) (string, func()) {
		var at string
		testbed.StartMariaDB(t, func(addr string) error {
			at = addr
			return answers(t, "mysql", "root@tcp("+addr+")/test")
		})
		return serving(t, "mysql://root@"+at+"/test"), nil
	}},
	{"etcd", true, func(t *testing.T) (string, func()) {
		client, peer := local(t), "http://"+local(t)
		testbed.Start(t, exec.Command(testbed.Lookup(t, "etcd"), "--name", "n", "--data-dir", t.TempDir(),
			"--unsafe-no-fsync", "--logger", "zap", "--log-level", "fatal",
			"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n="+peer))
		return serving(t, "etcd://"+client), nil
	}},
	{"consul", true, func(t *testing.T) (string, func()) {
		return serving(t, "consul://"+testbed.StartConsul(t, testbed.ConsulCluster{Version: "1.14"})[0].Addr()), nil
	}},
	{"nats", true, func(t *testing.T) (string, func()) {
		at := testbed.StartNATS(t, testbed.NATSCluster{Version: "2.15"})[0].Addr()
		return serving(t, "nats://"+at+"/locks?replicas=1"), nil
	}},
	{"dynamodb", true, func(t *testing.T) (string, func()) {
		_, addr := testbed.StartKumo(t)
		return serving(t, "dynamodb://key:secret@"+addr+"/locks?create=true"), nil
	}},
	{"zk", true, func(t *testing.T) (string, func()) {
		return serving(t, "zk://"+testbed.StartZooKeeper(t).Addr()+"/app"), nil
	}},
	{"s3", true, func(t *testing.T) (string, func()) {
		server := testbed.StartVersitygw(t, "locks-bucket")
		return serving(t, "s3://"+testbed.S3Access+":"+url.QueryEscape(testbed.S3Secret)+"@locks-bucket?endpoint=http://"+
			server.Addr()), func() { server.Kill(); server.Restart() }
	}},
	{"gs", true, func(t *testing.T) (string, func()) {
		return serving(t, "gs://locks-bucket?endpoint="+testbed.StartFakeGCS(t, "locks-bucket", "").URL()), nil
	}},
}

// pooler returns the URL of a pgbouncer that gives each transaction a free session.
func pooler(t *testing.T) string {
	url := func(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }
	ready := func(addr string) error { return answers(t, "pgx", url(addr)+"&default_query_exec_mode=exec") }
	server := testbed.StartPostgres(t, ready)
	return url(testbed.StartPgbouncer(t, server.Addr(), ready, "default_pool_size = 3", "server_round_robin = 1").Addr())
}

func redisStore(t *testing.T) string {
	addr := local(t)
	testbed.Start(t, redisCommand(t, addr, t.TempDir()))
	return serving(t, "redis://"+addr+"/0?kind=fenced")
}

func answers(t *testing.T, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(t.Context())
}

func TestOnEveryStore(t *testing.T) {
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			url, restart := store.start(t)
			t.Run("a command runs under the lock", func(t *testing.T) { aCommandRunsUnderTheLock(t, url) })
			t.Run("a hold that is renewed", func(t *testing.T) {
				renewed(t, url, func() { // which also take their time
					t.Run("kill -9 of withlock", func(t *testing.T) { killOfTheProgram(t, url) })
					if permits[store.name] {
						t.Run("permits", func(t *testing.T) { permitted(t, url) })
					} else {
						t.Run("no permits", func(t *testing.T) { notPermitted(t, url) })
					}
				})
			})
			t.Run("kill -9 of the child", func(t *testing.T) { killOfTheChild(t, url) })
			if store.leased {
				t.Run("force", func(t *testing.T) { forced(t, url) })
				t.Run("SIGSTOP beyond the lease", func(t *testing.T) { stoppedBeyondTheLease(t, url) })
			}
			if store.name != "file" { // a file has a name for each name
				t.Run("bad name", func(t *testing.T) { badName(t, url) })
			}
			t.Run("no wait for a free lock", func(t *testing.T) { free(t, url) })
			if p := inFrontOf(t, url); p != nil {
				t.Run("silence", func(t *testing.T) { silent(t, p, url) })
				t.Run("down", func(t *testing.T) { down(t, p, url) })
			}
			if restart != nil {
				t.Run("restart", func(t *testing.T) { restarted(t, url, restart) })
			}
		})
	}
}

func TestCommandsBehindATransactionPoolerEndWithTheirOwnCode(t *testing.T) {
	t.Parallel()
	url := pooler(t) + "&listen=false"
	inside := filepath.Join(t.TempDir(), "inside")
	command := "mkdir " + inside + " && sleep 0.02 && rmdir " + inside + " && exit 7"
	for range 3 {
		var all []*process
		for range 4 {
			all = append(all, start(t, url, "run", "-name", "it", "-ttl", longTTL, "--", "sh", "-c", command))
		}
		for _, p := range all {
			require.Equal(t, 7, p.code(), "%v", p.stderr.String())
		}
	}
}

func TestATransactionPoolerIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	p := start(t, pooler(t), "run", "-name", "it", "--", "echo", "never")
	require.NotContains(t, []int{0, exitNotAcquired, exitLost}, p.code())
	p.eof()
	p.says("listen=false")
}

func aCommandRunsUnderTheLock(t *testing.T, url string) {
	holder := hold(t, url, "up nightly", "run", "-name", "nightly", "-label", "night shift", "--", "sh", "-c", traps)
	var token uint64
	n, err := fmt.Sscanf(holder.up, "up nightly %d", &token)
	require.NoError(t, err, "%d", n)
	require.NotZero(t, token)

	try := run(t, url, "run", "-name", "nightly", "-try", "--", "echo", "never")
	wait := startPatient(t, url, "run", "-name", "nightly", "-wait", "50ms", "--", "echo", "never")
	ls := run(t, url, "ls", "-json", "nightly")
	for _, p := range []*process{try, wait} {
		require.Equal(t, exitNotAcquired, p.code())
		p.eof()
	}
	var pid int
	described := func() bool { // which holders of some stores do in the background
		who := run(t, url, "who", "-json", "nightly")
		require.Zero(t, who.code())
		var v lockView
		require.NoError(t, json.Unmarshal([]byte(who.line()), &v))
		require.True(t, v.Held)
		require.Len(t, v.Holders, 1)
		pid = v.Holders[0].PID
		return pid != 0
	}
	require.Eventually(t, described, hang, 10*time.Millisecond)
	require.Equal(t, holder.cmd.Process.Pid, pid)
	require.Zero(t, ls.code())
	var all []lockView
	require.NoError(t, json.Unmarshal([]byte(ls.line()), &all))
	require.Len(t, all, 1)
	require.Equal(t, "nightly", all[0].Name)

	holder.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, 5, holder.code())
	require.Zero(t, run(t, url, "run", "-name", "nightly", "-try", "--", "true").code())
}

// permits has the stores with semaphores.
var permits = map[string]bool{
	"sqlite": true, "postgres": true, "pgbouncer": true, "mysql": true, "redis": true, "etcd": true, "zk": true,
	"nats": true, "dynamodb": true, "s3": true, "gs": true,
}

func permitted(t *testing.T, url string) {
	command := []string{"--", "sh", "-c", `echo up $PERMIT_NAME $LOCK_NAME$LOCK_TOKEN; exec sleep 60`}
	holds := func() *process {
		return hold(t, url, "up many", append([]string{"run", "-name", "many", "-permits", "2", "-ttl", longTTL}, command...)...)
	}
	one, two := holds(), holds()
	try := run(t, url, "run", "-name", "many", "-permits", "2", "-try", "--", "true")
	require.Equal(t, exitNotAcquired, try.code())
	require.Zero(t, run(t, url, "run", "-name", "many", "-try", "--", "true").code(), "the lock is another thing")
	who := run(t, url, "who", "-json", "-permits", "2", "many")
	require.Zero(t, who.code())
	var v lockView
	require.NoError(t, json.Unmarshal([]byte(who.line()), &v))
	require.True(t, v.Shared)
	require.Len(t, v.Holders, 2)
	require.EqualValues(t, 1, v.Holders[0].Permits)
	ls := run(t, url, "ls", "-json") // with the document of the semaphore, if it is one
	require.Zero(t, ls.code())
	require.Contains(t, ls.line(), `[`)
	require.NoError(t, one.cmd.Process.Kill())
	three := holds() // once the lease has ended
	for _, p := range []*process{two, three} {
		p.signal(syscall.SIGTERM)
		require.Equal(t, 128+int(syscall.SIGTERM), p.code())
	}
}

func notPermitted(t *testing.T, url string) {
	require.Equal(t, exitUsage, run(t, url, "run", "-name", "many", "-permits", "2", "--", "true").code())
	require.Equal(t, exitUsage, run(t, url, "who", "-permits", "2", "many").code())
}

// renewed is for a hold that is renewed in time, meanwhile. Its command gets no SIGTERM.
func renewed(t *testing.T, url string, meanwhile func()) {
	holder := hold(t, url, "up", "run", "-name", "renewed", "-ttl", longTTL, "--", "sh", "-c", "echo up; exec sleep 9")
	meanwhile()
	require.Zero(t, holder.code())
}

func killOfTheChild(t *testing.T, url string) {
	require.Equal(t, 137, run(t, url, "run", "-name", "child", "--", "sh", "-c", "kill -9 $$").code())
	require.Equal(t, 3, run(t, url, "run", "-name", "child", "-try", "sh", "-c", "exit 3").code())
}

func killOfTheProgram(t *testing.T, url string) {
	holder := hold(t, url, "up", "run", "-name", "program", "-ttl", "6s", "--", "sh", "-c", naps)
	require.NoError(t, holder.cmd.Process.Kill())
	holder.eof() // the command has ended, too
	next := hold(t, url, "next", "run", "-name", "program", "--", "echo", "next")
	require.Zero(t, next.code())
}

func forced(t *testing.T, url string) {
	holder := hold(t, url, "up forced", "run", "-name", "forced", "-ttl", longTTL, "--", "sh", "-c", traps)
	force := hold(t, url, "forced: freed", "force", "-yes", "forced")
	freed := time.Now()
	require.Equal(t, "got TERM", holder.line())
	t.Logf("%v from the loss to SIGTERM, with renewals each third of %s",
		time.Since(freed).Round(time.Millisecond), longTTL)
	require.Zero(t, force.code())
	require.Equal(t, exitLost, holder.code())
}

func stoppedBeyondTheLease(t *testing.T, url string) {
	// A third of the lease is between SIGTERM and SIGKILL. A busy machine once needed over 4 s.
	holder := hold(t, url, "up stopped", "run", "-name", "stopped", "-ttl", "30s", "--", "sh", "-c", traps)
	holder.signal(syscall.SIGSTOP)
	// A process that is stopped inside of a transaction has the whole file of SQLite.
	for start(t, url, "run", "-name", "other", "-try", "--", "true").code() != 0 {
		holder.signal(syscall.SIGCONT)
		holder.signal(syscall.SIGSTOP)
	}
	next := hold(t, url, "next", "run", "-name", "stopped", "--", "echo", "next") // the lease has ended
	require.Zero(t, next.code())
	holder.signal(syscall.SIGCONT)
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}

// inFrontOf returns a proxy in front of the server of url, or nil without a server.
func inFrontOf(t *testing.T, url string) *leasetest.Proxy {
	if addr := serverOf.FindString(url); addr != "" {
		return leasetest.NewProxy(t, addr)
	}
	return nil
}

var serverOf = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// silent is for a store that has answered, and hangs or ends its connections then.
func silent(t *testing.T, p *leasetest.Proxy, url string) {
	url = serverOf.ReplaceAllString(url, p.Addr())
	for name, silence := range map[string]func(){"hangs": p.Cut, "refuses": p.Refuse} {
		p.Heal()
		p.Reset()
		store, err := open.URL(t.Context(), serving(t, url), open.WithTTL(6*time.Second))
		require.NoError(t, err)
		silence()
		for request, f := range map[string]func(ctx context.Context) error{
			"who":   func(ctx context.Context) error { _, err := inspect(ctx, store, "a"); return err },
			"ls":    func(ctx context.Context) error { _, err := store.Names(ctx, ""); return err },
			"force": func(ctx context.Context) error { _, err := store.ForceUnlock(ctx, "a"); return err },
			"try": func(context.Context) error {
				_, err := store.Locker("b").TryLockContext(context.WithoutCancel(t.Context()))
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			var failed failure
			require.ErrorAs(t, storeFailure(ctx, f(ctx)), &failed, "%s %s", request, name)
			require.Equal(t, exitUnreachable, failed.code, "%s %s: %v", request, name, failed)
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_ = store.Close(ctx)
		cancel()
	}
}

func badName(t *testing.T, url string) {
	name := strings.Repeat("n", 5000)
	require.Equal(t, exitUsage, run(t, url, "run", "-name", name, "--", "true").code())
	require.Equal(t, exitUsage, run(t, url, "who", name).code())
}

// free is for a lock that nobody holds.
func free(t *testing.T, url string) {
	require.Zero(t, run(t, url, "run", "-name", "free", "-wait", "0s", "--", "true").code())
}

func TestAVeryShortWaitGetsAFreeLock(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	p := inFrontOf(t, url)
	p.Delay(20 * time.Millisecond)
	url = serverOf.ReplaceAllString(url, p.Addr())
	require.Zero(t, startPatient(t, url, "run", "-name", "a", "-wait", "1ms", "--", "true").code())
}

// down is for a store that gives no answer from the beginning.
func down(t *testing.T, p *leasetest.Proxy, url string) {
	url = serverOf.ReplaceAllString(url, p.Addr())
	for name, silence := range map[string]func(){"hangs": p.Cut, "refuses": p.Refuse} {
		p.Heal()
		silence()
		p.Reset()
		// A busy machine may hold up one process for seconds. A run that waits for the limit of
		// open.URL does it each time.
		shortest := testbed.Hang
		for range 5 {
			began := time.Now()
			require.Equal(t, exitUnreachable, start(t, url, "run", "-name", "a", "-wait", "1s", "--", "true").code(), name)
			shortest = min(shortest, time.Since(began).Round(time.Millisecond))
			if shortest < open.DefaultTimeout*4/5 {
				break
			}
		}
		t.Logf("%v with a store that %s", shortest, name)
		require.Less(t, shortest, open.DefaultTimeout*4/5, name)
	}
}

func TestASilentStoreIsNotReportedAsHeld(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	p := inFrontOf(t, url)
	opened := false
	p.Swallow(func(reply []byte) bool { // what comes after the answer to the first request
		was := opened
		opened = opened || bytes.Contains(reply, []byte("PONG"))
		return was
	})
	url = serverOf.ReplaceAllString(url, p.Addr())
	wait := start(t, url, "run", "-name", "a", "-ttl", ttl, "-wait", "50ms", "--", "echo", "never")
	require.Equal(t, exitUnreachable, wait.code())
	wait.eof()
}

func TestAStoreRestartWithLossEndsTheCommand(t *testing.T) {
	t.Parallel()
	addr, dir := local(t), t.TempDir()
	server := testbed.Start(t, redisCommand(t, addr, dir))
	url := serving(t, "redis://"+addr+"/0?kind=fenced")
	holder := hold(t, url, "up restart", "run", "-name", "restart", "-ttl", longTTL, "--", "sh", "-c", traps)
	server.Kill()
	testbed.Start(t, redisCommand(t, addr, dir))
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}

func TestAnOutageBeyondTheLeaseEndsTheCommand(t *testing.T) {
	t.Parallel()
	addr := local(t)
	server := testbed.Start(t, redisCommand(t, addr, t.TempDir()))
	url := serving(t, "redis://"+addr+"/0?kind=fenced")
	holder := hold(t, url, "up outage", "run", "-name", "outage", "-ttl", "6s", "-on-lost", "kill", "--", "sh", "-c", traps)
	server.Kill()
	require.Equal(t, exitLost, holder.code())
	holder.eof() // SIGKILL went to the group, and no trap ran
}

// restarted is for a store that keeps its locks.
func restarted(t *testing.T, url string, restart func()) {
	holder := hold(t, url, "up restart", "run", "-name", "restart", "--", "sh", "-c", traps)
	restart()
	require.Zero(t, run(t, serving(t, url), "who", "restart").code())
	holder.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, 5, holder.code())
}

func TestACandidateWaitsForADownedStore(t *testing.T) {
	t.Parallel()
	addr := local(t)
	url := "redis://" + addr + "/0?kind=fenced"
	leader := start(t, url, "lead", "-name", "a", "--", "echo", "leads")
	leader.says("cannot be reached")
	ended := start(t, url, "lead", "-name", "a", "--", "echo", "never")
	ended.says("cannot be reached")
	ended.signal(syscall.SIGTERM)
	require.Equal(t, exitSignal+15, ended.code())
	ended.eof()

	testbed.Start(t, redisCommand(t, addr, t.TempDir()))
	require.Equal(t, "leads", leader.line())
	require.Zero(t, leader.code())
}

// Each request takes 20 ms. One after the other, they would not end in time.
func TestThousandsOfLocksAreListedInTime(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	store, err := open.URL(t.Context(), url)
	require.NoError(t, err)
	defer store.Close(t.Context())
	const n = 1000
	for i := range n {
		ok, err := store.Locker(fmt.Sprintf("lock %d", i)).TryLockContext(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
	}
	p := inFrontOf(t, url)
	p.Delay(20 * time.Millisecond)
	code, stdout, stderr := here("ls", "-store", serverOf.ReplaceAllString(url, p.Addr()), "-json")
	require.Zero(t, code, stderr)
	var views []lockView
	require.NoError(t, json.Unmarshal([]byte(stdout), &views))
	require.Len(t, views, n)
	for _, v := range views {
		require.True(t, v.Held, v.Name)
	}
}

func fileStore(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "locks") }

func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "locks.db") + "?kind=queue"
	hold(t, url, "up", "run", "-name", "a", "--", "sh", "-c", naps)
	waiter := start(t, url, "run", "-name", "a", "--", "echo", "never")
	require.Eventually(t, func() bool {
		var v lockView
		code, stdout, stderr := here("who", "-store", url, "-json", "a")
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(stdout), &v))
		return len(v.Waiters) == 1 && v.Waiters[0].PID == waiter.cmd.Process.Pid
	}, hang, 10*time.Millisecond)
	waiter.signal(syscall.SIGINT)
	require.Equal(t, exitSignal+2, waiter.code())
	waiter.eof()
}

func TestTheLostCommandsGroupDiesAfterTheGrace(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	deaf := `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo up; while :; do sleep 1; done`
	holder := hold(t, url, "up", "run", "-name", "a", "-ttl", longTTL, "-grace", "100ms", "--", "sh", "-c", deaf)
	require.Zero(t, run(t, url, "force", "-yes", "a").code())
	require.Equal(t, exitLost, holder.code())
	holder.eof() // the grandchild has the pipe too
}

func TestALossCanLeaveTheCommandAlone(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	holder := hold(t, url, "up", "run", "-name", "a", "-ttl", longTTL, "-on-lost", "none", "--", "sh", "-c", traps)
	require.Zero(t, run(t, url, "force", "-yes", "a").code())
	holder.says("the command goes on")
	holder.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}

func TestTheNextMachineLeadsAfterAKill(t *testing.T) {
	t.Parallel()
	url := fileStore(t)
	first := start(t, url, "lead", "-name", "a", "--", "sh", "-c", naps)
	require.Equal(t, "up", first.line())
	second := start(t, url, "lead", "-name", "a", "--", "sh", "-c", traps)
	require.NoError(t, first.cmd.Process.Kill())
	first.eof()
	require.Contains(t, second.line(), "up a")
	second.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", second.line())
	require.Equal(t, 5, second.code())
}

func TestALostLeaderRestartsTheCommand(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	leader := start(t, url, "lead", "-name", "a", "-ttl", longTTL, "--", "sh", "-c", traps)
	var before, after uint64
	_, err := fmt.Sscanf(leader.line(), "up a %d", &before)
	require.NoError(t, err)
	require.Zero(t, run(t, url, "force", "-yes", "a").code())
	require.Equal(t, "got TERM", leader.line())
	_, err = fmt.Sscanf(leader.line(), "up a %d", &after)
	require.NoError(t, err)
	require.Greater(t, after, before)
	leader.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", leader.line())
	require.Equal(t, 5, leader.code())
}

func TestAFailedCommandLetsAnotherMachineLead(t *testing.T) {
	t.Parallel()
	url := fileStore(t)
	first := start(t, url, "lead", "-name", "a", "-pause", "1h", "--", "sh", "-c", "echo failing; exit 3")
	require.Equal(t, "failing", first.line())
	second := start(t, url, "lead", "-name", "a", "--", "echo", "done")
	require.Equal(t, "done", second.line())
	require.Zero(t, second.code()) // success ends lead
	first.signal(syscall.SIGTERM)
	require.Equal(t, exitSignal+15, first.code())
}

func TestWatchPrintsATableForEachChange(t *testing.T) {
	t.Parallel()
	url := fileStore(t)
	watch := start(t, url, "watch", "-json", "-every", "20ms")
	// until reads tables until the lock is in the state.
	until := func(state func(v lockView) bool) {
		for {
			var views []lockView
			require.NoError(t, json.Unmarshal([]byte(watch.line()), &views))
			if len(views) == 1 && state(views[0]) {
				return
			}
		}
	}
	holder := hold(t, url, "up a", "run", "-name", "a", "--", "sh", "-c", traps)
	until(func(v lockView) bool { return len(v.Holders) == 1 && v.Holders[0].PID == holder.cmd.Process.Pid })
	watch.signal(syscall.SIGWINCH) // a terminal of another size ends nothing
	holder.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, 5, holder.code())
	until(func(v lockView) bool { return !v.Held }) // its file stays
	watch.signal(syscall.SIGINT)
	require.Zero(t, watch.code())
}
