package reentrant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/reentrant"
)

// The model is the state of the lock when all goroutines rest. Both policies have the same such
// states.
type model struct {
	holder, holds int // holder -1: free
	queue         []modelWaiter
}

type modelWaiter struct{ id, deadline int }

func (m *model) grant() {
	if m.holder < 0 && len(m.queue) > 0 {
		m.holder, m.holds = m.queue[0].id, 1
		m.queue = m.queue[1:]
	}
}

func TestEveryRunOfSeveralOwnersAgreesWithModel(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				type step struct{ Op, ID, Time int }
				script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
					return step{
						rapid.IntRange(0, 8).Draw(t, "op"),
						rapid.IntRange(0, 4).Draw(t, "id"),
						rapid.IntRange(1, 5).Draw(t, "time"),
					}
				}), 5, 60).Draw(rt, "script")
				var problem string
				synctest.Test(t, func(t *testing.T) {
					run := newPlay(t, reentrant.New(p))
					for i, s := range script {
						if problem = run.step(s.Op, s.ID, s.Time); problem != "" {
							problem = fmt.Sprintf("step %d: %s", i, problem)
							break
						}
					}
					run.end()
				})
				if problem != "" {
					rt.Fatal(problem)
				}
			})
		})
	}
}

type play struct {
	t       *testing.T
	l       *reentrant.Mutex
	m       model
	now     int
	owners  [5]locks.Owner
	ctx     [5]context.Context
	cancel  [5]context.CancelFunc // of the wait under way, if any
	results [5]error
	back    [5]atomic.Bool // not only ordered by what wakes the waiter, which may be a timer
}

func newPlay(t *testing.T, l *reentrant.Mutex) *play {
	p := &play{t: t, l: l, m: model{holder: -1}}
	for i := range p.owners {
		p.owners[i] = locks.NewOwner()
		p.ctx[i] = locks.WithOwner(t.Context(), p.owners[i])
	}
	return p
}

func (p *play) waits(id int) bool {
	return slices.ContainsFunc(p.m.queue, func(w modelWaiter) bool { return w.id == id })
}

func (p *play) drop(gone func(w modelWaiter) bool) { p.m.queue = slices.DeleteFunc(p.m.queue, gone) }

// step does one thing, and returns where the lock departs from the model.
func (p *play) step(op, id, d int) string {
	l, m, ctx := p.l, &p.m, p.ctx[id]
	waits := p.waits(id)
	switch {
	case op == 0: // the time goes on; deadlines lie between the points at which we look
		p.now += d
		p.drop(func(w modelWaiter) bool { return w.deadline > 0 && w.deadline <= p.now })
		time.Sleep(time.Duration(d) * time.Second)
	case op == 1 && waits:
		p.cancel[id]()
		p.drop(func(w modelWaiter) bool { return w.id == id })
	case waits: // has no other choice
	case op <= 3: // LockContext, with a deadline or without one
		wctx, cancel := context.WithCancel(ctx)
		deadline := 0
		if op == 3 {
			deadline = p.now + d
			wctx, cancel = context.WithTimeout(ctx, time.Duration(d)*time.Second-time.Millisecond)
		}
		p.cancel[id] = cancel
		p.back[id].Store(false)
		go func() {
			p.results[id] = l.LockContext(wctx)
			p.back[id].Store(true)
		}()
		switch {
		case m.holder == id:
			m.holds++
		case m.holder < 0:
			m.holder, m.holds = id, 1
		default:
			m.queue = append(m.queue, modelWaiter{id, deadline})
		}
	case op == 4:
		ok, err := l.TryLockContext(ctx)
		if want := m.holder < 0 || m.holder == id; ok != want || err != nil {
			return fmt.Sprintf("TryLockContext by %d: %t, %v, want %t", id, ok, err, want)
		}
		if ok {
			m.holder = id
			m.holds++
		}
	case op == 5: // done before
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := l.LockContext(done); !errors.Is(err, context.Canceled) {
			return fmt.Sprintf("LockContext with an ended context: %v", err)
		}
	default:
		err := l.UnlockContext(ctx)
		if m.holder != id {
			if !errors.Is(err, locks.ErrNotHeld) {
				return fmt.Sprintf("UnlockContext by %d, who does not hold: %v", id, err)
			}
			break
		}
		if err != nil {
			return fmt.Sprintf("UnlockContext by %d: %v", id, err)
		}
		if m.holds--; m.holds == 0 {
			m.holder = -1
			m.grant()
		}
	}
	synctest.Wait()
	if waits && !p.waits(id) && op <= 1 && !p.ended(id) {
		return fmt.Sprintf("the wait of %d ended with %v", id, p.results[id])
	}
	return p.compare()
}

// ended reports whether the last wait of id, which is over, was told that its context ended.
func (p *play) ended(id int) bool {
	err := p.results[id]
	return p.back[id].Load() && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

func (p *play) compare() string {
	l, m := p.l, &p.m
	var owner locks.Owner
	if m.holder >= 0 {
		owner = p.owners[m.holder]
	}
	queue := []locks.Owner{}
	for _, w := range m.queue {
		queue = append(queue, p.owners[w.id])
	}
	switch {
	case l.Owner() != owner:
		return fmt.Sprintf("owner %v, want %v", l.Owner(), owner)
	case l.IsLocked() != (owner != 0):
		return fmt.Sprintf("locked %t, owner %v", l.IsLocked(), owner)
	case !slices.Equal(l.Queued(), queue) || l.QueueLength() != len(queue) || l.HasQueued() != (len(queue) > 0):
		return fmt.Sprintf("queued %v, want %v", l.Queued(), queue)
	case l.IsHeld() || l.HoldCount() != 0:
		return "held by a goroutine"
	}
	for id, o := range p.owners {
		if l.IsQueued(o) != p.waits(id) {
			return fmt.Sprintf("%v queued: %t", o, l.IsQueued(o))
		}
		if p.cancel[id] != nil && p.back[id].Load() == p.waits(id) {
			return fmt.Sprintf("%v back: %t", o, p.back[id].Load())
		}
	}
	return ""
}

// end releases all holds, and checks that as many unlocks as there are holds free the lock.
func (p *play) end() {
	for _, cancel := range p.cancel {
		if cancel != nil {
			defer cancel()
			cancel()
		}
	}
	synctest.Wait()
	for _, ctx := range p.ctx {
		for p.l.UnlockContext(ctx) == nil {
		}
	}
	require.False(p.t, p.l.IsLocked())
	require.False(p.t, p.l.HasQueued())
}

// The linearizability of tries and unlocks by several owners.

type call struct {
	unlock bool
	owner  int
}

type state struct{ holder, holds int }

var tries = porcupine.Model{
	Init: func() any { return state{-1, 0} },
	Step: func(st, in, out any) (bool, any) {
		s, c, ok := st.(state), in.(call), out.(bool)
		mine := s.holder == c.owner
		switch {
		case c.unlock && !mine, !c.unlock && !mine && s.holder >= 0:
			return !ok, s
		case c.unlock && s.holds == 1:
			return ok, state{-1, 0}
		case c.unlock:
			return ok, state{s.holder, s.holds - 1}
		}
		return ok, state{c.owner, s.holds + 1}
	},
}

func TestTriesAndUnlocksAreLinearizable(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			for range 15 {
				m := reentrant.New(p)
				began := time.Now()
				var mu sync.Mutex
				var history []porcupine.Operation
				var wg sync.WaitGroup
				for owner := range 4 {
					ctx := locks.WithOwner(context.Background(), locks.NewOwner())
					do := func(unlock bool) (ok bool) {
						start := time.Since(began)
						if unlock {
							ok = m.UnlockContext(ctx) == nil
						} else {
							ok, _ = m.TryLockContext(ctx)
						}
						end := time.Since(began)
						mu.Lock()
						defer mu.Unlock()
						history = append(history, porcupine.Operation{
							ClientId: owner, Input: call{unlock, owner}, Output: ok,
							Call: int64(start), Return: int64(end),
						})
						return ok
					}
					wg.Go(func() {
						for i := range 40 {
							do(i*7%5 < 2+owner%2)
						}
						for do(true) {
						}
					})
				}
				wg.Wait()
				require.False(t, m.IsLocked())
				require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(tries, history, 20*time.Second))
			}
		})
	}
}
