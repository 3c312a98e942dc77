package curator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdUntilKilled})
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("6") // the parallel ones wait for sessions to end
	}
	goleak.VerifyTestMain(m, testbed.Children())
}

const (
	long  = 3 * time.Minute // a session timeout that no test waits for
	short = 9 * time.Second // one that a process survives on a busy machine
)

var background = context.Background()

// situation is one test with both sides.
type situation struct {
	name string
	f    func(s *stage)
}

var situations = []situation{
	{"Go and Java exclude and wake each other", goAndJavaExcludeAndWakeEachOther},
	{"Go and Java get the mutex in order", goAndJavaGetTheMutexInOrder},
	{"both sides' readers and writers respect each other", bothSidesReadersAndWritersRespectEachOther},
	{"our downgrade keeps Java writers out", ourDowngradeKeepsJavaWritersOut},
	{"Java's downgrade is understood", javasDowngradeIsUnderstood},
	{"one side's multi-lock excludes the other", oneSidesMultiLockExcludesTheOther},
	{"each side can revoke the other's lock", eachSideCanRevokeTheOthersLock},
	{"both sides' nodes have the same form", bothSidesNodesHaveTheSameForm},
	{"both sides share a lock under load", bothSidesShareALockUnderLoad},
	{"Go waits for permits that Java releases", goWaitsForPermitsThatJavaReleases},
	{"Java waits for permits that Go releases", javaWaitsForPermitsThatGoReleases},
	{"both sides share a semaphore under load", bothSidesShareASemaphoreUnderLoad},
	{"a lease of ours looks like Java's", aLeaseOfOursLooksLikeJavas},
	{"a killed Go process frees its locks for Java", aKilledGoProcessFreesItsLocksForJava},
	{"a killed Java process frees its locks for Go", aKilledJavaProcessFreesItsLocksForGo},
	{"permits of a killed Java process return", permitsOfAKilledJavaProcessReturn},
}

func TestWithTheCurrentCurator(t *testing.T) { perform(t, current) }

func TestWithAnOlderCurator(t *testing.T) { perform(t, before) }

func someone() context.Context { return locks.WithOwner(background, locks.NewOwner()) }

// holdUntilKilled acquires a lock, prints "held", and keeps it. Its arguments are the address
// of the server, the kind of the lock, and its path.
func holdUntilKilled(args []string) error {
	c, err := zklock.New(background, args[:1], zklock.WithSessionTimeout(short))
	if err != nil {
		return err
	}
	defer c.Close(background)
	if err := lockOf(c, args[1], args[2]).LockContext(background); err != nil {
		return err
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func lockOf(c *zklock.Client, kind, path string) *lease.Mutex {
	switch kind {
	case "semaphore":
		return c.SemaphoreMutex(path)
	case "read":
		return c.RWMutex(path).ReadMutex()
	case "write":
		return c.RWMutex(path).WriteMutex()
	}
	return c.Mutex(path)
}

// company is a server with a Java process, which the situations share.
type company struct {
	version string
	addr    string
	direct  *zk.Conn
	java    *process
}

// stage is the part of the company's server below one node, with its Java process and a Go client.
// The client hardly ever polls, so that only a watch wakes its waiters.
type stage struct {
	*testing.T
	company
	root string // of the paths below
	java *agent
	ours *zklock.Client
}

type mute struct{}

func (mute) Printf(string, ...any) {}

// perform runs the situations with a version of Curator. Those that wait for sessions to end run
// at the same time, after the others.
func perform(t *testing.T, version string) {
	server := testbed.StartZooKeeper(t)
	direct, _, err := zk.Connect([]string{server.Addr()}, patience, zk.WithLogger(mute{}))
	require.NoError(t, err)
	t.Cleanup(direct.Close)
	c := company{version, server.Addr(), direct, startProcess(t, version, server.Addr(), long)}
	for i, each := range situations {
		t.Run(strings.ReplaceAll(each.name, " ", "_"), func(t *testing.T) {
			s := &stage{T: t, company: c, root: "/s" + strconv.Itoa(i)}
			_, err := direct.Create(s.root, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			s.java = &agent{c.java, t, s.root}
			s.ours = s.open()
			each.f(s)
		})
	}
}

// withAMortal gives the stage a Java process of its own, whose locks are soon free if it is killed.
func (s *stage) withAMortal() {
	s.java = &agent{startProcess(s, s.version, s.addr, short), s, s.root}
}

func (s *stage) open(opts ...zklock.Option) *zklock.Client {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	opts = append(opts, zklock.WithNamespace(s.root), zklock.WithSessionTimeout(long),
		zklock.WithLeaseOptions(lease.WithPoll(time.Hour), adaptertest.Patient))
	c, err := zklock.New(ctx, []string{s.addr}, opts...)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, c.Close(background)) })
	return c
}

func (s *stage) list(dir string) []string {
	names, _, err := s.direct.Children(s.root + dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(s, err)
	return names
}

func (s *stage) queued(dir string, n int) {
	s.Helper()
	full := func() bool { return len(s.list(dir)) == n }
	require.Eventually(s, full, patience, 5*time.Millisecond, "%d nodes in %s", n, dir)
}

// lock begins an acquisition by Go.
func (s *stage) lock(l locks.TryLocker, ctx context.Context) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	return got
}

func (s *stage) wait(got <-chan error) {
	s.Helper()
	select {
	case err := <-got:
		require.NoError(s, err)
	case <-time.After(patience):
		s.Fatal("it was not woken")
	}
}

func (s *stage) refused(l *lease.Mutex) {
	s.Helper()
	ok, err := l.TryLockContext(someone())
	require.NoError(s, err)
	require.False(s, ok)
}

// waiting is where the waiters of a kind of lock have their nodes.
var waiting = map[string]string{"mutex": "", "write": "", "semaphore": "/locks"}

func goAndJavaExcludeAndWakeEachOther(s *stage) {
	for kind, at := range waiting {
		path := "/" + kind
		l, a := lockOf(s.ours, kind, path), someone()
		require.NoError(s, l.LockContext(a))
		s.java.do("false", "t1", "try", kind, path, "100")
		answer := s.java.start("t1", "lock", kind, path)
		want := 2
		if kind == "semaphore" {
			want = 1
		}
		s.queued(path+at, want)
		require.NoError(s, l.UnlockContext(a))
		require.Equal(s, "ok", s.java.wait(answer))
		s.refused(l)
		got := s.lock(l, a)
		s.queued(path+at, want)
		s.java.do("ok", "t1", "unlock", kind, path)
		s.wait(got)
		s.java.do("false", "t1", "try", kind, path, "100")
		require.NoError(s, l.UnlockContext(a))
		s.queued(path+at, 0)
	}
}

func goAndJavaGetTheMutexInOrder(s *stage) {
	var mu sync.Mutex
	var order []int
	add := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, i)
	}
	s.java.do("ok", "holder", "lock", "mutex", "/it")
	var wg sync.WaitGroup
	for i := range 8 {
		if i%2 == 0 {
			l, a := s.open().Mutex("it"), someone()
			wg.Go(func() {
				assert.NoError(s, l.LockContext(a))
				add(i)
				assert.NoError(s, l.UnlockContext(a))
			})
		} else {
			thread := "t" + strconv.Itoa(i)
			answer := s.java.start(thread, "lock", "mutex", "/it")
			wg.Go(func() {
				assert.Equal(s, "ok", <-answer)
				add(i)
				assert.Equal(s, "ok", <-s.java.start(thread, "unlock", "mutex", "/it"))
			})
		}
		s.queued("/it", i+2)
	}
	s.java.do("ok", "holder", "unlock", "mutex", "/it")
	wg.Wait()
	require.Equal(s, []int{0, 1, 2, 3, 4, 5, 6, 7}, order)
}

func bothSidesReadersAndWritersRespectEachOther(s *stage) {
	read, write := lockOf(s.ours, "read", "/it"), lockOf(s.ours, "write", "/it")
	a, b := someone(), someone()
	require.NoError(s, read.LockContext(a))
	s.java.do("true", "t1", "try", "read", "/it", "5000")
	s.java.do("false", "t2", "try", "write", "/it", "100")
	s.refused(write)
	s.java.do("ok", "t1", "unlock", "read", "/it")
	answer := s.java.start("t2", "lock", "write", "/it")
	s.queued("/it", 2)
	s.refused(read) // a writer waits
	late := s.lock(read, b)
	s.queued("/it", 3)
	require.NoError(s, read.UnlockContext(a))
	require.Equal(s, "ok", s.java.wait(answer))
	require.Empty(s, late)
	s.java.do("ok", "t2", "unlock", "write", "/it")
	s.wait(late)
	require.NoError(s, read.UnlockContext(b))

	require.NoError(s, write.LockContext(a))
	s.java.do("false", "t1", "try", "read", "/it", "100")
	answer = s.java.start("t1", "lock", "read", "/it")
	s.queued("/it", 2)
	require.NoError(s, write.UnlockContext(a))
	require.Equal(s, "ok", s.java.wait(answer))
	s.java.do("ok", "t1", "unlock", "read", "/it")
}

func ourDowngradeKeepsJavaWritersOut(s *stage) {
	read, write := lockOf(s.ours, "read", "/it"), lockOf(s.ours, "write", "/it")
	a := someone()
	require.NoError(s, write.LockContext(a))
	writer := s.java.start("t1", "lock", "write", "/it")
	s.queued("/it", 2)
	require.NoError(s, read.LockContext(a))
	require.NoError(s, write.UnlockContext(a))
	s.java.do("false", "t2", "try", "write", "/it", "200")
	require.Empty(s, writer)
	require.NoError(s, read.UnlockContext(a))
	require.Equal(s, "ok", s.java.wait(writer))
	s.java.do("ok", "t1", "unlock", "write", "/it")
}

func javasDowngradeIsUnderstood(s *stage) {
	read, write := lockOf(s.ours, "read", "/it"), lockOf(s.ours, "write", "/it")
	s.java.do("ok", "t1", "lock", "write", "/it")
	s.java.do("ok", "t1", "lock", "read", "/it")
	var number string
	for _, n := range s.list("/it") {
		if _, after, ok := strings.Cut(n, "__READ__"); ok {
			number = after
		}
	}
	require.Equal(s, map[string]string{current: "0000000000", before: "0000000001"}[s.version], number)
	s.refused(read)
	s.refused(write)
	a, b := someone(), someone()
	reader := s.lock(read, b)
	s.queued("/it", 3)
	s.java.do("ok", "t1", "unlock", "write", "/it")
	s.wait(reader)
	writer := s.lock(write, a)
	s.queued("/it", 3)
	require.NoError(s, read.UnlockContext(b))
	select {
	case err := <-writer:
		s.Fatalf("granted (%v) while Java reads", err)
	case <-time.After(200 * time.Millisecond):
	}
	s.java.do("ok", "t1", "unlock", "read", "/it")
	s.wait(writer)
	require.NoError(s, write.UnlockContext(a))
}

func oneSidesMultiLockExcludesTheOther(s *stage) {
	m, a := locks.Multi(s.ours.Mutex("a"), s.ours.Mutex("b")), someone()
	s.java.do("ok", "t1", "lock", "multi", "/a,/b")
	ok, err := m.TryLockContext(a)
	require.NoError(s, err)
	require.False(s, ok)
	got := s.lock(m, a)
	s.queued("/a", 2)
	s.java.do("ok", "t1", "unlock", "multi", "/a,/b")
	s.wait(got)
	s.java.do("false", "t1", "try", "mutex", "/a", "100")
	s.java.do("false", "t1", "try", "mutex", "/b", "100")
	s.java.do("false", "t1", "try", "multi", "/a,/b", "100")
	require.NoError(s, m.UnlockContext(a))
	s.java.do("true", "t1", "try", "multi", "/a,/b", "5000")
	s.java.do("ok", "t1", "unlock", "multi", "/a,/b")
}

func eachSideCanRevokeTheOthersLock(s *stage) {
	s.java.do("ok", "t1", "revocable", "mutex", "/it")
	require.NoError(s, s.ours.Revoke(background, "it"))
	select {
	case path := <-s.java.revoked:
		require.Equal(s, s.root+"/it", path)
	case <-time.After(patience):
		s.Fatal("Java was not asked")
	}
	s.java.do("ok", "t1", "unlock", "mutex", "/it")

	asked := make(chan uint64, 1)
	l, a := s.ours.Mutex("ours", zklock.WithRevocation(func(token uint64) { asked <- token })), someone()
	require.NoError(s, l.LockContext(a))
	s.java.do("ok", "t1", "revoke", "mutex", "/ours/"+s.list("/ours")[0])
	h, err := l.Hold(a)
	require.NoError(s, err)
	select {
	case token := <-asked:
		require.Equal(s, h.Token(), token)
	case <-time.After(patience):
		s.Fatal("we were not asked")
	}
	require.NoError(s, l.UnlockContext(a))
}

// form is the form of a node, without its random parts.
type form struct {
	path      string
	data      string
	ephemeral bool
}

var random = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)

// forms returns the forms of a node and of all nodes below it.
func (s *stage) forms(path, seen string) (all []form) {
	data, st, err := s.direct.Get(s.root + path)
	require.NoError(s, err)
	text := string(data)
	if net.ParseIP(text) != nil {
		text = "an address"
	}
	all = append(all, form{seen, text, st.EphemeralOwner != 0})
	for _, n := range s.list(path) {
		if n == "locks" { // empty now, and perhaps removed already
			continue
		}
		name := random.ReplaceAllString(n, "UUID-")
		all = append(all, s.forms(path+"/"+n, seen+"/"+name)...)
	}
	return all
}

func bothSidesNodesHaveTheSameForm(s *stage) {
	for _, kind := range []string{"mutex", "semaphore", "read", "write", "downgraded"} {
		ours, theirs, a := "/ours/"+kind, "/theirs/"+kind, someone()
		kinds := []string{kind}
		if kind == "downgraded" {
			kinds = []string{"write", "read"}
		}
		for _, k := range kinds {
			require.NoError(s, lockOf(s.ours, k, ours).LockContext(a))
			s.java.do("ok", "t1", "lock", k, theirs)
		}
		if kind == "downgraded" && s.version == before {
			continue // the older form, which zklock does not write
		}
		require.ElementsMatch(s, s.forms(theirs, ""), s.forms(ours, ""), kind)
		for i := range kinds {
			k := kinds[len(kinds)-1-i]
			require.NoError(s, lockOf(s.ours, k, ours).UnlockContext(a))
			s.java.do("ok", "t1", "unlock", k, theirs)
		}
	}
	revocable, a := s.ours.Mutex("/ours/revocable", zklock.WithRevocation(func(uint64) {})), someone()
	require.NoError(s, revocable.LockContext(a))
	s.java.do("ok", "t1", "revocable", "mutex", "/theirs/revocable")
	require.ElementsMatch(s, s.forms("/theirs/revocable", ""), s.forms("/ours/revocable", ""))
	require.NoError(s, revocable.UnlockContext(a))
	s.java.do("ok", "t1", "unlock", "mutex", "/theirs/revocable")
	// Only containers are removed when they are empty.
	for _, kind := range []string{"mutex", "semaphore"} {
		for _, side := range []string{"/ours/", "/theirs/"} {
			require.Eventually(s, func() bool {
				there, _, err := s.direct.Exists(s.root + side + kind)
				return err == nil && !there
			}, patience, 50*time.Millisecond)
		}
	}
}

func aKilledGoProcessFreesItsLocksForJava(s *stage) {
	s.Parallel()
	answers := make(map[string]<-chan string)
	for kind := range waiting {
		path := "/" + kind
		child := testbed.Child(s, "hold", s.addr, kind, s.root+path)
		require.Equal(s, "held", child.Line())
		answers[kind] = s.java.start(kind, "lock", kind, path)
		child.Kill()
	}
	for kind, answer := range answers {
		require.Equal(s, "ok", s.java.wait(answer))
		s.java.do("ok", kind, "unlock", kind, "/"+kind)
	}
}

func aKilledJavaProcessFreesItsLocksForGo(s *stage) {
	s.Parallel()
	s.withAMortal()
	for kind := range waiting {
		s.java.do("ok", "t1", "lock", kind, "/"+kind)
	}
	var got []<-chan error
	a := someone()
	for kind := range waiting {
		l := lockOf(s.ours, kind, "/"+kind)
		s.refused(l)
		got = append(got, s.lock(l, a))
	}
	s.java.Kill()
	for _, c := range got {
		s.wait(c)
	}
}

func bothSidesShareALockUnderLoad(s *stage) {
	for kind := range waiting {
		s.share(kind, filepath.Join(s.TempDir(), "inside"))
	}
}

// share has three Java threads take a lock a number of times, and three goroutines until they have.
func (s *stage) share(kind, inside string) {
	const threads, rounds = 3, 100
	path := "/load/" + kind
	stress := func(rounds int) (answers []<-chan string) {
		for i := range threads {
			c := s.java.start("t"+strconv.Itoa(i), "stress", kind, path, strconv.Itoa(rounds), inside)
			answers = append(answers, c)
		}
		return answers
	}
	for _, c := range stress(10) { // a young Java process is slow
		require.Equal(s, "10", s.java.wait(c))
	}
	var clients []*zklock.Client
	for range 3 {
		clients = append(clients, s.open())
	}
	var ours atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	answers := stress(rounds)
	for _, client := range clients {
		l, a := lockOf(client, kind, path), someone()
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !assert.NoError(s, l.LockContext(a)) {
					return
				}
				f, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL, 0o644)
				if !assert.NoError(s, err, "two inside") {
					return
				}
				f.Close()
				time.Sleep(time.Millisecond)
				assert.NoError(s, os.Remove(inside))
				ours.Add(1)
				if !assert.NoError(s, l.UnlockContext(a)) {
					return
				}
			}
		})
	}
	for _, c := range answers {
		require.Equal(s, strconv.Itoa(rounds), s.java.wait(c))
	}
	mine, theirs := int(ours.Load()), threads*rounds
	s.Logf("%s: %d by Go, %d by Java", kind, mine, theirs)
	require.Greater(s, mine*5, mine+theirs, "a fifth is ours")
	require.Greater(s, theirs*5, mine+theirs, "a fifth is Java's")
}
