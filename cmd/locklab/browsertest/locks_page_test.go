package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

// soleStore is a store of leases for one client.
type soleStore struct{}

func (soleStore) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Held: true, Token: 41}, nil
}

func (soleStore) Lookup(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Held: true, Token: 41}, nil
}

func (soleStore) Renew(_ context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	ok := make([]bool, len(holds))
	for i := range ok {
		ok[i] = true
	}
	return ok, nil
}

func (soleStore) Release(context.Context, driver.HoldID) (driver.Released, error) {
	return driver.Released{Held: true}, nil
}

func (soleStore) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

// transfer is a function of the program that the page shows. It waits for to until ctx ends.
func transfer(ctx context.Context, to locks.TryLocker) { _ = to.LockContext(ctx) }

// incident makes goroutines wait for each other, for a goroutine that has exited, and for a cache,
// and a lease. The returned function ends one of the cycle's waits.
func incident(t *testing.T, r *record.Recorder) (open context.CancelFunc) {
	bg := context.Background()
	ctx, cancel := context.WithCancel(bg)
	var all sync.WaitGroup
	var set keyed.Mutexes[string]
	a, b, session := set.Of("account 7"), set.Of("account 12"), new(reentrant.Mutex)
	cache := r.Wrap("cache", new(fair.Mutex))

	both := make(chan struct{}, 2)
	proceed := make(chan struct{})
	cross := func(ctx context.Context, mine, next locks.TryLocker) {
		_ = mine.LockContext(bg)
		both <- struct{}{}
		<-proceed
		transfer(ctx, next)
		_ = mine.UnlockContext(bg)
	}
	first, open := context.WithCancel(ctx)
	all.Go(func() { cross(first, a, b) })
	all.Go(func() { cross(ctx, b, a) })
	<-both
	<-both
	close(proceed)

	var gone locks.Owner
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		gone = locks.CurrentOwner(bg)
		session.Lock()
	}()
	<-exited
	orphaned := r.Wrap("session", session)
	for range 3 {
		all.Go(func() { transfer(ctx, orphaned) })
	}
	require.NoError(t, cache.LockContext(bg))
	for range 8 {
		all.Go(func() { transfer(ctx, cache) })
	}
	client, err := lease.New(soleStore{}, driver.WithErrorPrefix("redislock"), lease.WithTTL(30*time.Second))
	require.NoError(t, err)
	require.NoError(t, client.Mutex("nightly report").LockContext(bg))
	require.Eventually(t, func() bool {
		return a.QueueLength() == 1 && b.QueueLength() == 1 && session.QueueLength() == 3 && len(r.Waits()) == 11
	}, time.Minute, time.Millisecond)
	t.Cleanup(func() {
		cancel()
		all.Wait()
		assert.NoError(t, cache.UnlockContext(bg))
		assert.NoError(t, session.UnlockContext(locks.WithOwner(bg, gone)))
		assert.NoError(t, client.Close(bg))
	})
	return open
}

func TestTheLivePageOfLocksInABrowser(t *testing.T) {
	path := browser(t)
	r := record.New(record.Options{Waits: true})
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", locksdebug.Handler(locksdebug.WithRecorder(r))) // before the waits, to time them
	open := incident(t, r)
	server := httptest.NewServer(mux)
	defer server.Close()

	ctx, complaints := started(t, path, server.URL+"/debug/locks")
	do := func(actions ...chromedp.Action) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, actions...))
	}
	ask := func(js string) (answer string) {
		t.Helper()
		do(chromedp.Evaluate("String("+js+")", &answer))
		return answer
	}
	theme := func(name string) chromedp.Action {
		scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: name}
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme})
	}
	until := func(js string) { // the page's policy forbids chromedp.Poll, which compiles text
		t.Helper()
		require.Eventually(t, func() bool { return ask(js) == "true" }, time.Minute, 50*time.Millisecond, js)
	}
	address := server.URL + "/debug/locks?refresh=1s"
	do(cdplog.Enable(), network.Enable(), theme("light"), chromedp.EmulateViewport(1180, 900),
		chromedp.Navigate(address), chromedp.WaitVisible("#content svg"))

	backgrounds := map[string]bool{}
	for _, look := range []struct {
		name, theme   string
		width, height int64
	}{
		{"wide-light", "light", 1180, 900}, {"wide-dark", "dark", 1180, 900},
		{"phone-light", "light", 360, 740}, {"phone-dark", "dark", 390, 740},
	} {
		do(theme(look.theme), chromedp.EmulateViewport(look.width, look.height))
		backgrounds[ask(`getComputedStyle(document.body).backgroundColor`)] = true
		assert.Equal(t, "true", ask(`document.documentElement.scrollWidth <= innerWidth`),
			"%s scrolls sideways", look.name)
		if look.width < 640 {
			assert.Empty(t, ask(`[...document.querySelectorAll("svg, table")].
				filter(el => el.getBoundingClientRect().right > innerWidth + 1).
				map(el => el.tagName + "." + (el.getAttribute("class") || el.parentElement.className)).join()`),
				"%s cuts pictures or tables off", look.name)
		}
		if kept("debuglocks-" + look.name) {
			var png []byte
			do(chromedp.FullScreenshot(&png, 100))
			keep(t, filepath.Join(shots, "..", "debuglocks"), look.name, png)
		}
	}
	assert.Len(t, backgrounds, 2, "light and dark")
	do(theme("light"), chromedp.EmulateViewport(1180, 900))

	assert.Contains(t, ask(`document.title`), "(2!) locks of")
	assert.Equal(t, "4", ask(`document.querySelectorAll("svg .of-lock, svg .gone").length`))
	assert.Equal(t, "Cycle of 2", ask(`document.querySelector("h2").firstChild.textContent.trim()`),
		"the most urgent is first")

	// The page refreshes itself. A part that the reader has unfolded stays unfolded.
	ask(`document.querySelector(".lock:not(.alert) details").open = true`)
	unfolded := ask(`document.querySelector(".lock:not(.alert) details").dataset.key`)
	open()
	until(`document.title.startsWith("(1!)")`)
	assert.Equal(t, unfolded, ask(`[...document.querySelectorAll("details[open]")].map((d) => d.dataset.key).join()`))
	assert.Equal(t, "true", ask(`document.getElementById("stale").hidden`))

	// A paused page does not change. No request is on its way once the status has changed.
	before := ask(`document.getElementById("status").textContent`)
	until(fmt.Sprintf(`document.getElementById("status").textContent !== %q`, before))
	do(chromedp.Click("#pause"))
	assert.Equal(t, "Resume", ask(`document.getElementById("pause").textContent`))

	assert.Empty(t, complaints(), "the browser has nothing to complain about")

	// The page says so when the process does not answer any more.
	do(chromedp.Click("#pause"))
	server.CloseClientConnections()
	server.Close()
	until(`!document.getElementById("stale").hidden`)
}
