package leasetest

import (
	"cmp"
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
)

// requested is a life without trouble, of two clients without users. A test sends their requests,
// which take no time.
type requested struct {
	*life
	name string
}

// judge returns what the rules of a life find while f sends requests, or nil.
func judge(t *testing.T, open func() Config, f func(l requested)) (found *finding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := World{Open: func(testing.TB) Config { return open() }}.withDefaults()
		l := newLife(t, w, plan{processes: 2, names: 1, ttl: 10 * time.Second})
		for slot := range l.plan.processes {
			l.processes = append(l.processes, l.enters(slot, 0))
		}
		f(requested{l, l.names[0]})
		l.cancel()
		for _, p := range l.processes {
			p.grave.bury()
			p.shut()
		}
		close(l.over)
		l.messages.Wait()
		found = l.found()
	})
	return found
}

func (l requested) id(who int, serial string) driver.HoldID {
	return driver.HoldID{Name: l.name, Acquisition: "client" + strconv.Itoa(who) + ":" + serial}
}

// acquire lets a client ask for permits of a semaphore of three, and says whether the client gets
// them.
func (l requested) acquire(who int, serial string, permits int64, d time.Duration) bool {
	l.Helper()
	r := l.processes[who].opened[0]
	req := driver.Request{HoldID: l.id(who, serial), TTL: d}
	if l.cfg.Semaphore != nil {
		req.Permits, req.Size = permits, 3
	}
	ctx := context.Background()
	reply, err := l.ledger.acquire(ctx, r, req, false, func() (driver.Reply, error) { return r.inner.Acquire(ctx, req) })
	if err != nil {
		l.Error(err)
	}
	return reply.Held
}

func (l requested) release(who int, serial string) {
	l.Helper()
	r, id := l.processes[who].opened[0], l.id(who, serial)
	_, err := l.ledger.release(r, id, func() (driver.Released, error) { return r.inner.Release(context.Background(), id) })
	if err != nil {
		l.Error(err)
	}
}

// force has a client break the lock, and says whether it was held.
func (l requested) force(who int) bool {
	l.Helper()
	r := l.processes[who].opened[0]
	broken, err := l.ledger.force(r, l.name, func() (bool, error) {
		return r.inner.(driver.Breaker).Break(context.Background(), l.name)
	})
	if err != nil {
		l.Error(err)
	}
	return broken
}

// One of the holds ends at the very moment of a refusal. The ledger looks at them in any order.
func TestARefusalTellsTheEndOfTheHoldsThatAreLeft(t *testing.T) {
	found := judge(t, func() Config { return direct(t, "", fakestore.Permits) }, func(l requested) {
		l.acquire(0, "short", 1, 10*time.Second)
		l.acquire(0, "ended", 1, 30*time.Second)
		l.acquire(0, "long", 1, 20*time.Second)
		time.Sleep(time.Second)
		l.release(0, "ended")
		for range 1000 {
			if l.acquire(1, "refused", 3, time.Second) {
				t.Error("it has permits that are held")
				return
			}
		}
	})
	if found != nil {
		t.Errorf("%s: %s", found.rule, found.text)
	}
}

// The restart has ended the session of the earlier holder, which has learned of its loss then.
func TestAHolderIsToldOfItsOwnLossOnly(t *testing.T) {
	found := judge(t, func() Config { return reset("forgets", fakestore.Tied) }, func(l requested) {
		l.acquire(0, "earlier", 1, 10*time.Second)
		l.cause(trouble{kind: forgets, who: -1}, nil)
		time.Sleep(time.Minute)
		if !l.acquire(1, "later", 1, 10*time.Second) || !l.force(1) {
			t.Error("the later holder has no lock to free")
		}
		time.Sleep(time.Minute)
	})
	if found != nil {
		t.Errorf("%s: %s", found.rule, found.text)
	}
}

func TestAHolderIsToldOfABreak(t *testing.T) {
	for flaw, want := range map[fakestore.Flaw]string{"": "", fakestore.LossMute: "the store: it tells holders of their losses"} {
		t.Run(cmp.Or(string(flaw), "no flaw"), func(t *testing.T) {
			found := judge(t, func() Config { return direct(t, flaw, fakestore.Tied) }, func(l requested) {
				l.acquire(0, "holder", 1, 10*time.Second)
				if !l.force(1) {
					t.Error("the holder has no lock")
				}
				time.Sleep(time.Minute)
			})
			rule := ""
			if found != nil {
				rule = found.rule
			}
			if rule != want {
				t.Errorf("what breaks is %q, not %q", rule, want)
			}
		})
	}
}
