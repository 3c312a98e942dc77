package locksdebug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

var bg = context.Background()

// hang is a limit that only a hang reaches.
const hang = time.Minute

func get(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func text(t *testing.T, h http.Handler) string {
	t.Helper()
	w := get(h, "/", "*/*")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	return w.Body.String()
}

func page(t *testing.T, h http.Handler) string {
	t.Helper()
	w := get(h, "/", "text/html,application/xhtml+xml,*/*;q=0.8")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	return w.Body.String()
}

type party struct {
	Owner     string
	Goroutine int64
	State     string
	Exited    bool
	Seconds   *float64
	Holds     int
	Shared    bool
	Limited   bool
	Store     bool
	At        string
	Stack     int
	Taken     int `json:"takenStack"`
}

// answer is the JSON of the handler.
type answer struct {
	PID    int
	Cycles []struct {
		Certain bool
		Steps   []struct {
			Wait      party
			Lock, For string
		}
	}
	Orphans []struct {
		Lock, Owner string
		Waiters     []party
	}
	Locks []struct {
		Name, Kind, Address, Alert string
		Holders, Waiters           []party
	}
	Leases []struct {
		Store, Name, State, Cause string
		Owner                     *party
		Left                      float64  `json:"leftSeconds"`
		TTL                       float64  `json:"ttlSeconds"`
		Renewed                   *float64 `json:"renewedSecondsAgo"`
		Unanswered                int      `json:"unansweredRenewals"`
		Token                     uint64
	}
	Watched []struct {
		Name, Error string
		Held        bool
		Waiting     int
		Holders     []struct{ Permits int64 }
	}
	Stacks  []string
	Stopped float64 `json:"stoppedSeconds"`
	History []struct {
		Name     string
		Acquired uint64
		Waited   float64 `json:"waitedSeconds"`
		Wait99   float64 `json:"wait99PercentSeconds"`
		Hold99   float64 `json:"hold99PercentSeconds"`
	}
}

func ask(t *testing.T, h http.Handler) (a answer) {
	t.Helper()
	w := get(h, "/", "application/json")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	d := json.NewDecoder(w.Body)
	require.NoError(t, d.Decode(&a))
	return a
}

// await returns when ok is true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, hang, time.Millisecond)
}

// start calls f in a goroutine, and returns its owner. The test waits for its end.
func start(t *testing.T, f func(ctx context.Context)) (owner locks.Owner, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(bg)
	owners, done := make(chan locks.Owner), make(chan struct{})
	go func() {
		defer close(done)
		owners <- locks.CurrentOwner(bg)
		f(ctx)
	}()
	owner = <-owners
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return owner, stop
}

// waitHere waits for l until ctx ends. It is the function that reports show.
func waitHere(ctx context.Context, l locks.TryLocker) { _ = l.LockContext(ctx) }

func TestAHeldLockShowsItsQueueInOrder(t *testing.T) {
	h := locksdebug.Handler()
	mu := reentrant.New(locks.FIFO)
	mu.Lock()
	defer mu.Unlock()
	var owners []string
	for i := range 3 {
		o, _ := start(t, func(ctx context.Context) { waitHere(ctx, mu) })
		owners = append(owners, o.String())
		await(t, func() bool { return mu.QueueLength() == i+1 })
	}
	me := locks.CurrentOwner(bg)
	await(t, func() bool { return strings.Contains(text(t, h), "3 waiters at\n") }) // all sleep

	a := ask(t, h)
	require.Len(t, a.Locks, 1)
	l := a.Locks[0]
	require.Equal(t, "reentrant.Mutex", l.Kind)
	require.Equal(t, fmt.Sprintf("%p", mu), l.Address)
	require.Len(t, l.Holders, 1)
	require.Equal(t, me.String(), l.Holders[0].Owner)
	require.Contains(t, a.Stacks[l.Holders[0].Stack-1], "TestAHeldLockShowsItsQueueInOrder")
	require.Len(t, l.Waiters, 3)
	last := hang.Seconds()
	for i, w := range l.Waiters {
		require.Equal(t, owners[i], w.Owner)
		require.True(t, w.Limited)
		require.NotNil(t, w.Seconds)
		require.LessOrEqual(t, *w.Seconds, last, "the first has waited longest")
		last = *w.Seconds
		require.Regexp(t, `^locks_test\.waitHere handler_test\.go:\d+$`, w.At)
		require.Contains(t, a.Stacks[w.Stack-1], "locks_test.waitHere()")
	}
	require.Equal(t, l.Waiters[0].Stack, l.Waiters[1].Stack, "equal stacks are one")

	shown := text(t, h)
	require.Contains(t, shown, "0 cycles, 0 orphans, 1 lock, 3 waiters, 0 leases")
	require.Contains(t, shown, "  held by "+me.String())
	require.Regexp(t, `(?s)  1\. `+owners[0]+` for .*  2\. `+owners[1]+` for .*  3\. `+owners[2]+` for `, shown)
	require.Contains(t, shown, "3 waiters at\n")
	html := page(t, h)
	for _, o := range owners {
		require.Contains(t, html, "<td>"+o+"</td>")
	}
	require.Contains(t, html, "3 waiters at <code>locks_test.waitHere handler_test.go:")
}

func TestWithoutHoldsAndWaitsNothingIsShown(t *testing.T) {
	h := locksdebug.Handler()
	require.Contains(t, text(t, h), "0 cycles, 0 orphans, 0 locks, 0 waiters, 0 leases")
	require.Contains(t, page(t, h), "Nothing waits, and no hold is known.")
	a := ask(t, h)
	require.Empty(t, a.Locks)
	require.NotNil(t, a.Locks, "an empty list, not null")
}

func TestACycleOfTwoGoroutinesIsShownFirst(t *testing.T) {
	h := locksdebug.Handler()
	other := new(reentrant.Mutex)
	other.Lock()
	defer other.Unlock()
	start(t, func(ctx context.Context) { waitHere(ctx, other) })
	await(t, func() bool { return other.QueueLength() == 1 })

	var set keyed.Mutexes[string]
	a, b := set.Of("accounts"), set.Of("orders")
	var first, second locks.Owner
	arrived, both := make(chan struct{}), make(chan struct{})
	cross := func(mine, next locks.TryLocker) func(context.Context) {
		return func(ctx context.Context) {
			require.NoError(t, mine.LockContext(bg))
			arrived <- struct{}{}
			<-both
			waitHere(ctx, next)
			require.NoError(t, mine.UnlockContext(bg))
		}
	}
	first, stopFirst := start(t, cross(a, b))
	second, stopSecond := start(t, cross(b, a))
	for range 2 {
		<-arrived
	}
	close(both)
	await(t, func() bool { return a.QueueLength() == 1 && b.QueueLength() == 1 })

	got := ask(t, h)
	require.Len(t, got.Cycles, 1)
	c := got.Cycles[0]
	require.False(t, c.Certain, "contexts may end it")
	require.Len(t, c.Steps, 2)
	step := func(i int) []string { return []string{c.Steps[i].Wait.Owner, c.Steps[i].Lock, c.Steps[i].For} }
	want := [][]string{
		{first.String(), "orders", second.String()}, {second.String(), "accounts", first.String()},
	}
	if second < first { // a cycle begins with its least party
		slices.Reverse(want)
	}
	require.Equal(t, want, [][]string{step(0), step(1)})
	require.NotNil(t, c.Steps[0].Wait.Seconds)
	require.Len(t, got.Locks, 3)
	for i, alert := range []string{"cycle", "cycle", ""} {
		require.Equal(t, alert, got.Locks[i].Alert)
	}

	stopped := pauses()
	require.Contains(t, text(t, h), "CYCLE of 2, a limit or a shared owner may end it")
	require.Equal(t, stopped+1, pauses(), "a request stops the world once")
	html := page(t, h)
	require.Contains(t, html, "<title>(1!) locks of")
	require.Contains(t, html, "A cycle of 2 waits")
	require.Equal(t, 4, strings.Count(html, `<rect class="node`), "two parties and two locks")
	require.Equal(t, 4, strings.Count(html, `<path class="edge"`))
	stopFirst()
	stopSecond()
	require.Empty(t, ask(t, h).Cycles)
}

// pauses returns how often the world was stopped, except for garbage collection.
func pauses() (n uint64) {
	samples := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(samples)
	for _, count := range samples[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}

func TestTheBoxesOfACycleHaveDifferentTitles(t *testing.T) {
	const kind = "a long name that all of these locks begin with "
	var set keyed.Mutexes[string]
	one, two := set.Of(kind+"1"), set.Of(kind+"2")
	ready := make(chan struct{}, 2)
	goOn := make(chan struct{})
	cross := func(mine, next locks.TryLocker) func(context.Context) {
		return func(ctx context.Context) {
			_ = mine.LockContext(bg)
			ready <- struct{}{}
			<-goOn
			waitHere(ctx, next)
			_ = mine.UnlockContext(bg)
		}
	}
	first, stop := start(t, cross(one, two))
	_, stopOther := start(t, cross(two, one))
	<-ready
	<-ready
	close(goOn)
	await(t, func() bool { return one.QueueLength()+two.QueueLength() == 2 })
	shown := page(t, locksdebug.Handler())
	require.Regexp(t, `text-anchor="middle">[^<]*with 1<`, shown)
	require.Regexp(t, `text-anchor="middle">[^<]*with 2<`, shown)
	require.Contains(t, shown, "<b>"+first.String()+"</b> at <code>", "the place is that of the waiter")
	stop()
	stopOther()
}

func TestAnExitedGoroutinesLockIsAnOrphan(t *testing.T) {
	h := locksdebug.Handler()
	mu := new(reentrant.Mutex)
	gone, _ := start(t, func(context.Context) { mu.Lock() })
	await(t, func() bool { return mu.IsLocked() })
	_, stop := start(t, func(ctx context.Context) { waitHere(ctx, mu) })
	await(t, func() bool { return mu.QueueLength() == 1 && len(ask(t, h).Orphans) == 1 })

	a := ask(t, h)
	require.Equal(t, gone.String(), a.Orphans[0].Owner)
	require.Len(t, a.Orphans[0].Waiters, 1)
	require.Equal(t, "orphan", a.Locks[0].Alert)
	require.True(t, a.Locks[0].Holders[0].Exited)
	require.Contains(t, text(t, h), "ORPHAN reentrant.Mutex(")
	html := page(t, h)
	require.Contains(t, html, "An orphan with 1 waiter")
	require.Contains(t, html, `<rect class="node gone"`)
	stop()
	require.NoError(t, mu.UnlockContext(locks.WithOwner(bg, gone)))
}

func TestReadersAndAWriterShareOneEntry(t *testing.T) {
	h := locksdebug.Handler()
	rw := new(rwlock.RWMutex)
	rw.RLock()
	defer rw.RUnlock()
	start(t, func(ctx context.Context) { waitHere(ctx, rw) })
	await(t, func() bool { return rw.QueueLength() == 1 })
	start(t, func(ctx context.Context) { waitHere(ctx, rw.ReadLocker()) })
	await(t, func() bool { return rw.QueueLength() == 2 })
	a := ask(t, h)
	require.Len(t, a.Locks, 1)
	require.Len(t, a.Locks[0].Holders, 1)
	require.Equal(t, []bool{false, true}, []bool{a.Locks[0].Waiters[0].Shared, a.Locks[0].Waiters[1].Shared})
}

func TestARecorderAddsNamesTimesAndOwnerlessLocks(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	owned, plain := r.Wrap("accounts", new(reentrant.Mutex)), r.Wrap("cache", new(fair.Mutex))
	require.NoError(t, owned.LockContext(bg))
	require.NoError(t, owned.LockContext(bg))
	require.NoError(t, plain.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, owned) })
	start(t, func(ctx context.Context) { waitHere(ctx, plain) })
	await(t, func() bool {
		a := ask(t, h)
		return len(a.Locks) == 2 && len(a.Locks[0].Waiters) == 1 && len(a.Locks[1].Waiters) == 1 &&
			a.Locks[0].Address+a.Locks[1].Address != ""
	})
	byName := map[string]int{}
	a := ask(t, h)
	for i, l := range a.Locks {
		byName[l.Name] = i
	}
	require.Len(t, byName, 2)
	me := locks.CurrentOwner(bg).String()
	accounts, cache := a.Locks[byName["accounts"]], a.Locks[byName["cache"]]
	require.Equal(t, "reentrant.Mutex", accounts.Kind)
	require.NotEmpty(t, accounts.Address, "it is the lock that deadlock detection knows")
	require.Equal(t, 2, accounts.Holders[0].Holds)
	require.Equal(t, me, accounts.Holders[0].Owner)
	require.NotNil(t, accounts.Holders[0].Seconds)
	require.Equal(t, "fair.Mutex", cache.Kind)
	require.Equal(t, me, cache.Holders[0].Owner)
	require.NotNil(t, cache.Waiters[0].Seconds)
	require.Regexp(t, `^locks_test\.waitHere `, cache.Waiters[0].At)
	for _, l := range []locks.TryLocker{owned, owned, plain} {
		require.NoError(t, l.UnlockContext(bg))
	}
}

func TestARecordedKeyedLockIsOneLock(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	var set keyed.Mutexes[int]
	l := r.Wrap("users", set.Of(7))
	require.NoError(t, l.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, l) })
	await(t, func() bool { return set.Of(7).QueueLength() == 1 })
	a := ask(t, h)
	require.Len(t, a.Locks, 1)
	require.Equal(t, "users 7", a.Locks[0].Name)
	require.Len(t, a.Locks[0].Holders, 1)
	require.Len(t, a.Locks[0].Waiters, 1)
	require.NoError(t, l.UnlockContext(bg))
}

func TestALeaseIsShownWithTheTimeLeft(t *testing.T) {
	h := locksdebug.Handler()
	c, err := lease.New(newStore(), lease.WithTTL(time.Hour), driver.WithErrorPrefix("mystore"))
	require.NoError(t, err)
	defer c.Close(bg)
	l := c.Mutex("report")
	require.NoError(t, l.LockContext(bg))
	a := ask(t, h)
	require.Len(t, a.Leases, 1)
	got := a.Leases[0]
	require.Equal(t, []string{"mystore", "report", "held"}, []string{got.Store, got.Name, got.State})
	require.Equal(t, locks.CurrentOwner(bg).String(), got.Owner.Owner)
	require.InDelta(t, 3600, got.Left, 120)
	require.InDelta(t, 3600, got.TTL, 0)
	require.EqualValues(t, 42, got.Token)
	require.Nil(t, got.Renewed)
	require.Regexp(t, `LEASE mystore report held by goroutine \d+ for .*\n`+
		`  (59|5\d) min \d+ s left of 1 h 0 min, no renewal yet, token 42`, text(t, h))
	require.Contains(t, page(t, h), `<rect class="left"`)

	hold, err := l.Hold(bg)
	require.NoError(t, err)
	require.NoError(t, hold.Extend(bg, time.Hour))
	require.NotNil(t, ask(t, h).Leases[0].Renewed)

	start(t, func(ctx context.Context) { waitHere(ctx, l) })
	await(t, func() bool { return l.QueueLength() == 1 })
	a = ask(t, h)
	require.Len(t, a.Locks, 1, "the local queue has the name of the lease")
	require.Equal(t, []string{"mystore", "report"}, []string{a.Locks[0].Kind, a.Locks[0].Name})
	require.NotNil(t, a.Locks[0].Holders[0].Seconds)
	require.NoError(t, l.UnlockContext(bg))
}

func TestALostLeaseIsShownUntilItsUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := locksdebug.Handler()
		s := newStore()
		s.silent = true
		c, err := lease.New(s, lease.WithTTL(3*time.Second))
		require.NoError(t, err)
		defer c.Close(bg)
		l := c.Mutex("report")
		require.NoError(t, l.LockContext(bg))
		hold, err := l.Hold(bg)
		require.NoError(t, err)
		<-hold.Lost()
		a := ask(t, h)
		require.Equal(t, "lost", a.Leases[0].State)
		require.Positive(t, a.Leases[0].Unanswered)
		require.NotEmpty(t, a.Leases[0].Cause)
		require.Contains(t, page(t, h), `<tr class="lost">`)
		require.ErrorIs(t, l.UnlockContext(bg), locks.ErrLost)
		require.Empty(t, ask(t, h).Leases)
	})
}

func TestAWaiterInTheStoreIsShown(t *testing.T) {
	h := locksdebug.Handler()
	s := newStore()
	s.holders["report"] = "another process"
	c, err := lease.New(s)
	require.NoError(t, err)
	defer c.Close(bg)
	start(t, func(ctx context.Context) { waitHere(ctx, c.Mutex("report")) })
	await(t, func() bool { return len(ask(t, h).Locks) == 1 })
	a := ask(t, h)
	require.Equal(t, "waiting", a.Leases[0].State)
	require.Empty(t, a.Locks[0].Holders, "the holder is elsewhere")
	require.True(t, a.Locks[0].Waiters[0].Store)
	require.Contains(t, text(t, h), "waits in the store")
	require.Contains(t, page(t, h), "waits in the store")
}

func TestTwoClientsLocksOfOneNameDiffer(t *testing.T) {
	h := locksdebug.Handler()
	var waiting, held []string
	for range 2 { // each has a server of its own
		c, err := lease.New(newStore(), driver.WithErrorPrefix("mystore"))
		require.NoError(t, err)
		defer c.Close(bg)
		l := c.Mutex("report")
		owner := locks.NewOwner()
		require.NoError(t, l.LockContext(locks.WithOwner(bg, owner)))
		held = append(held, owner.String())
		o, _ := start(t, func(ctx context.Context) { waitHere(ctx, l) })
		waiting = append(waiting, o.String())
		await(t, func() bool { return l.QueueLength() == 1 })
	}
	a := ask(t, h)
	require.Len(t, a.Locks, 2)
	shown := map[string]string{}
	for _, l := range a.Locks {
		require.Equal(t, "report", l.Name)
		require.Len(t, l.Holders, 1)
		require.Len(t, l.Waiters, 1)
		shown[l.Holders[0].Owner] = l.Waiters[0].Owner
	}
	require.Equal(t, map[string]string{held[0]: waiting[0], held[1]: waiting[1]}, shown)
	require.Len(t, a.Leases, 2)
}

// hostile is a name that must not act on a page.
const hostile = "<script>alert(1)</script>\"'&\n\x1b[31mred\u009b31m\u202e"

// inspector is a lock that returns its fields as its description.
type inspector struct {
	info locks.Info
	err  error
}

func (i inspector) Inspect(context.Context) (locks.Info, error) { return i.info, i.err }

func TestWatchedLocksAreInspected(t *testing.T) {
	info := locks.Info{Held: true, Waiting: 2, Holders: []locks.Party{{
		Label: "worker", Host: "db1", PID: 12, Since: time.Now().Add(-time.Minute), Left: 20 * time.Second, Token: 9,
		Permits: 3,
	}}}
	h := locksdebug.Handler(locksdebug.WithInspector("report", inspector{info: info}),
		locksdebug.WithInspector("broken", inspector{err: errors.New("store out of reach")}))
	a := ask(t, h)
	require.Equal(t, "report", a.Watched[0].Name)
	require.EqualValues(t, 3, a.Watched[0].Holders[0].Permits)
	require.Equal(t, 2, a.Watched[0].Waiting)
	require.Equal(t, "store out of reach", a.Watched[1].Error)
	for _, shown := range []string{text(t, h), page(t, h)} {
		require.Contains(t, shown, "held, 2 waiters")
		require.Contains(t, shown, "worker, pid 12 on db1, for 1 min 0 s, 20 s left, token 9, permits 3")
		require.Contains(t, shown, "store out of reach")
	}
}

func TestNamesAndLabelsAreEscaped(t *testing.T) {
	var set keyed.Mutexes[string]
	mu := set.Of(hostile)
	require.NoError(t, mu.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, mu) })
	await(t, func() bool { return mu.QueueLength() == 1 })
	orphan := set.Of(hostile + "2")
	gone, _ := start(t, func(context.Context) { _ = orphan.LockContext(bg) })
	await(t, func() bool { return orphan.IsLocked() })
	_, stop := start(t, func(ctx context.Context) { waitHere(ctx, orphan) })
	r := record.New(record.Options{})
	l := r.Wrap(hostile, new(fair.Mutex))
	require.NoError(t, l.LockContext(bg))
	info := locks.Info{Held: true, Holders: []locks.Party{{Label: hostile, Host: hostile}}}
	h := locksdebug.Handler(locksdebug.WithRecorder(r), locksdebug.WithInspector(hostile, inspector{info: info}),
		locksdebug.WithInspector("error", inspector{err: errors.New(hostile)}))
	await(t, func() bool { return len(ask(t, h).Orphans) == 1 })

	html := page(t, h)
	require.NotContains(t, html, "<script>alert")
	require.False(t, strings.ContainsAny(html, "\x1b\u009b\u202e"), "nor as a control character")
	require.Contains(t, html, "&lt;script&gt;alert(1)&lt;/script&gt;")
	require.Equal(t, 1, strings.Count(html, "<script>"), "its own")
	shown := text(t, h)
	require.False(t, strings.ContainsAny(shown, "\x1b\u009b\u202e"))
	require.NotContains(t, shown, "\nred")
	require.Equal(t, hostile, ask(t, h).Watched[0].Name)

	stop()
	require.NoError(t, orphan.UnlockContext(locks.WithOwner(bg, gone)))
	require.NoError(t, l.UnlockContext(bg))
	require.NoError(t, mu.UnlockContext(bg))
}

func TestTheAnswerIsNotStoredAndLoadsNothing(t *testing.T) {
	h := locksdebug.Handler()
	for _, target := range []string{"/", "/?format=html", "/?format=json", "/?format=no"} {
		header := get(h, target, "").Header()
		require.Equal(t, "no-store", header.Get("Cache-Control"), target)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), target)
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"), target)
		policy := header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'", target)
		require.Contains(t, policy, "frame-ancestors 'none'", target)
		require.NotContains(t, policy, "unsafe")
		require.NotContains(t, policy, "http")
	}
	require.NotRegexp(t, `(src|href)="?(https?:)?//`, page(t, h))
}

func TestOnlyGetAndHeadAreAnswered(t *testing.T) {
	h := locksdebug.Handler()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Zero(t, w.Body.Len())
	require.NotEqual(t, "0", w.Header().Get("Content-Length"))
}

func TestQueryAndAcceptChooseTheFormat(t *testing.T) {
	h := locksdebug.Handler()
	for _, c := range []struct{ target, accept, want string }{
		{"/", "", "text/plain; charset=utf-8"},
		{"/", "*/*", "text/plain; charset=utf-8"},
		{"/", "application/json", "application/json"},
		{"/", "text/html;q=0.9, application/json;q=0.1", "text/html; charset=utf-8"},
		{"/?format=json", "text/html", "application/json"},
		{"/?format=text", "text/html", "text/plain; charset=utf-8"},
		{"/?format=html", "", "text/html; charset=utf-8"},
	} {
		require.Equal(t, c.want, get(h, c.target, c.accept).Header().Get("Content-Type"), "%v", c)
	}
}

func TestAWrongQuerysErrorSaysWhatIsAllowed(t *testing.T) {
	h := locksdebug.Handler()
	w := get(h, "/?format=%3Cb%3E", "text/html")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "locksdebug: unknown format \"<b>\", known are html, json and text\n", w.Body.String())
	for _, refresh := range []string{"1ms", "-1s", "often"} {
		w = get(h, "/?refresh="+refresh, "text/html")
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "it must be 0 or a duration of at least 1s")
	}
	require.Contains(t, get(h, "/?refresh=1m", "text/html").Body.String(), `data-refresh="60"`)
	require.Contains(t, get(h, "/?refresh=90", "text/html").Body.String(), `data-refresh="90"`, "seconds")
	require.Contains(t, get(h, "/?refresh=0", "text/html").Body.String(), `data-refresh="0"`)
}

func TestAThousandWaitersMakeASmallPage(t *testing.T) {
	h := locksdebug.Handler()
	stop := crowd(t, 1000)
	defer stop()
	await(t, func() bool { return strings.Contains(page(t, h), "1000 waiters at") }) // all sleep
	html := page(t, h)
	require.Less(t, len(html), 64<<10)
	require.Contains(t, html, "and 950 more waiters")
	require.Contains(t, html, "1000 waiters at")
	a := ask(t, h)
	require.Len(t, a.Locks[0].Waiters, 1000)
	require.Less(t, len(a.Stacks), 20)
}

// crowd starts n goroutines that wait for a lock.
func crowd(t testing.TB, n int) (stop func()) {
	mu := new(reentrant.Mutex)
	mu.Lock()
	ctx, cancel := context.WithCancel(bg)
	done := make(chan struct{})
	for range n {
		go func() {
			waitHere(ctx, mu)
			done <- struct{}{}
		}()
	}
	require.Eventually(t, func() bool { return mu.QueueLength() == n }, hang, time.Millisecond)
	return func() {
		cancel()
		for range n {
			<-done
		}
		mu.Unlock()
	}
}

// BenchmarkRequest shows what a request costs while 1,000 goroutines wait for a lock.
func BenchmarkRequest(b *testing.B) {
	h := locksdebug.Handler()
	stop := crowd(b, 1000)
	defer stop()
	for _, format := range []string{"html", "json", "text"} {
		b.Run(format, func(b *testing.B) {
			var size int
			for b.Loop() {
				size = get(h, "/?format="+format, "").Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

func TestTheProfileOfHoldsIsKnownToPprof(t *testing.T) {
	p := locksdebug.HeldProfile()
	require.Same(t, p, pprof.Lookup("locks.held"))
	require.Same(t, p, locksdebug.HeldProfile())
	l := record.New(record.Options{Held: p}).Wrap("l", new(reentrant.Mutex))
	require.NoError(t, l.LockContext(bg))
	require.Equal(t, 1, p.Count())
	require.NoError(t, p.WriteTo(io.Discard, 0))
	require.NoError(t, l.UnlockContext(bg))
	require.Zero(t, p.Count())
}

func TestANilRecorderOrLockIsRefused(t *testing.T) {
	for _, c := range []struct {
		o    locksdebug.Option
		text string
	}{
		{locksdebug.WithRecorder(nil), "locksdebug: WithRecorder: nil Recorder"},
		{locksdebug.WithInspector("l", nil), "locksdebug: WithInspector: nil lock"},
		{locksdebug.WithInspector("l", (*fair.Mutex)(nil)), "locksdebug: WithInspector: nil lock"},
	} {
		require.PanicsWithValue(t, c.text, func() { locksdebug.Handler(c.o) })
	}
}

func TestARequestThatHasGoneTakesNoTurn(t *testing.T) {
	slow := make(chan struct{})
	asked := make(chan struct{})
	h := locksdebug.Handler(locksdebug.WithInspector("slow", blocking{asked, slow}))
	first := make(chan struct{})
	go func() { get(h, "/", ""); close(first) }()
	<-asked
	ctx, cancel := context.WithCancel(bg)
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	require.Zero(t, w.Body.Len())
	close(slow)
	<-first
}

// blocking is a lock whose inspection waits.
type blocking struct{ asked, answer chan struct{} }

func (b blocking) Inspect(context.Context) (locks.Info, error) {
	close(b.asked)
	<-b.answer
	return locks.Info{}, nil
}

func TestTheAnswerSaysHowLongItStopped(t *testing.T) {
	var mu reentrant.Mutex
	r := record.New(record.Options{})
	l := r.Wrap("l", &mu)
	require.NoError(t, l.LockContext(bg))
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	require.Positive(t, ask(t, h).Stopped)
	require.Regexp(t, `stopped the program for \d+ [µm]?s at most`, text(t, h))
	require.Regexp(t, `stopped the program for \d+ [µm]?s at most`, page(t, h))
	require.NoError(t, l.UnlockContext(bg))
}

func TestTheQueryFiltersByName(t *testing.T) {
	r := record.New(record.Options{})
	for _, name := range []string{"account 1", "account 2", "session"} {
		l := r.Wrap(name, new(reentrant.Mutex))
		require.NoError(t, l.LockContext(bg))
		defer func() { require.NoError(t, l.UnlockContext(bg)) }()
	}
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	var a answer
	require.NoError(t, json.Unmarshal(get(h, "/?format=json&name=account", "").Body.Bytes(), &a))
	require.Len(t, a.Locks, 2)
	require.Len(t, a.History, 2)
	shown := get(h, "/?format=html&name=account", "").Body.String()
	require.Contains(t, shown, "account 1")
	require.NotContains(t, shown, "session")
	require.Contains(t, get(h, "/?format=text&name=account", "").Body.String(),
		"at most\nonly names with account, and all cycles and orphans\n\nLOCK")
	shown = get(h, "/?format=html&name=acount", "").Body.String()
	require.Contains(t, shown, "No name that is known has this text.")
	require.NotContains(t, shown, "no hold is known", "three locks are held")
}

func TestTheHistoryBeginsWithTheMostContendedName(t *testing.T) {
	r := record.New(record.Options{})
	r.Wrap("calm", new(fair.Mutex))
	l := r.Wrap("busy", new(fair.Mutex))
	for range 3 {
		require.NoError(t, l.LockContext(bg))
		require.NoError(t, l.UnlockContext(bg))
	}
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	a := ask(t, h)
	require.Equal(t, "busy", a.History[0].Name)
	require.EqualValues(t, 3, a.History[0].Acquired)
	require.Positive(t, a.History[0].Waited)
	require.Equal(t, "calm", a.History[1].Name)
	require.Contains(t, text(t, h), "HISTORY busy  3 acquired, 0 failed, 0 lost")
	require.Contains(t, page(t, h), "most contended first")
}

func TestAGoroutineShowsItsHoldsAndWait(t *testing.T) {
	var set keyed.Mutexes[string]
	a, b := set.Of("a"), set.Of("b")
	r := record.New(record.Options{})
	wrapped := r.Wrap("a", a)
	require.NoError(t, b.LockContext(bg))
	owner, stop := start(t, func(ctx context.Context) {
		_ = wrapped.LockContext(ctx)
		waitHere(ctx, b)
		_ = wrapped.UnlockContext(bg)
	})
	await(t, func() bool { return b.QueueLength() == 1 })
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	require.Contains(t, text(t, h), "\nOWNER "+owner.String()+"\n  holds a\n  waits for b\n")
	require.Contains(t, page(t, h), "<td>"+owner.String()+"</td><td>a</td><td>b</td>")
	stop()
	require.NoError(t, b.UnlockContext(bg))
}

func TestThePageListsABoundedNumberOfLocks(t *testing.T) {
	r := record.New(record.Options{})
	for range 300 {
		l := r.Wrap("l", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		defer func() { require.NoError(t, l.UnlockContext(bg)) }()
	}
	shown := page(t, locksdebug.Handler(locksdebug.WithRecorder(r)))
	require.Equal(t, 200, strings.Count(shown, `<section class="lock`))
	require.Contains(t, shown, "and 100 more locks")
}
