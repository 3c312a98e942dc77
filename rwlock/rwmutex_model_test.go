package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/rwlock"
)

// The model is the state of the lock and of one of its conditions when all goroutines rest. Both
// policies have the same such states, and differ only in between.
type rwModel struct {
	writer int // or -1
	holds  int // the writer's
	reads  map[int]int
	queue  []rwWaiter
	cond   []rwWaiter
	want   map[int]error // what the last call of each comes back with
}

type rwWaiter struct {
	id       int
	write    bool
	holds    int // that a writer gets
	deadline int // 0: none
}

func (m *rwModel) free() bool { return m.writer < 0 && len(m.reads) == 0 }

func (m *rwModel) give(w rwWaiter) {
	if w.write {
		m.writer, m.holds = w.id, w.holds
	} else {
		m.reads[w.id]++
	}
}

// grant admits the waiters at the head of the queue that may enter.
func (m *rwModel) grant() {
	for len(m.queue) > 0 && (m.free() || m.writer < 0 && !m.queue[0].write) {
		m.give(m.queue[0])
		m.queue = m.queue[1:]
	}
}

// ask is a call for the lock that may wait.
func (m *rwModel) ask(w rwWaiter) {
	if m.free() || !w.write && m.writer < 0 && len(m.queue) == 0 {
		m.give(w)
	} else {
		m.queue = append(m.queue, w)
	}
}

func index(ws []rwWaiter, id int) int {
	return slices.IndexFunc(ws, func(w rwWaiter) bool { return w.id == id })
}

func (m *rwModel) waits(id int) bool { return index(m.queue, id) >= 0 || index(m.cond, id) >= 0 }

// giveUp ends the wait of id, if that wait can end without the lock.
func (m *rwModel) giveUp(id int, err error) {
	if i := index(m.cond, id); i >= 0 {
		w := m.cond[i]
		m.cond = slices.Delete(m.cond, i, i+1)
		w.deadline = 0
		m.want[id] = err
		m.ask(w)
	} else if i := index(m.queue, id); i >= 0 && m.queue[i].deadline > 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.want[id] = err
		m.grant()
	}
}

// elapse lets the time come to now.
func (m *rwModel) elapse(now int) {
	for {
		due := slices.DeleteFunc(slices.Concat(m.queue, m.cond), func(w rwWaiter) bool {
			return w.deadline == 0 || w.deadline > now
		})
		if len(due) == 0 {
			return
		}
		first := slices.MinFunc(due, func(a, b rwWaiter) int { return a.deadline - b.deadline })
		m.giveUp(first.id, context.DeadlineExceeded)
	}
}

// rwParty uses the lock, with at most one call under way. It is a goroutine, or an explicit owner
// that makes each call in a goroutine of its own.
type rwParty struct {
	owner  locks.Owner
	ctx    context.Context
	calls  chan func() // nil for an explicit owner
	cancel context.CancelFunc
	back   atomic.Bool
	err    atomic.Value // of type result
}

type result struct{ error }

func (p *rwParty) start(call func() error) {
	p.back.Store(false)
	f := func() {
		p.err.Store(result{call()})
		p.back.Store(true)
	}
	if p.calls != nil {
		p.calls <- f
	} else {
		go f()
	}
}

const rwParties = 7

type rwPlay struct {
	rw        *rwlock.RWMutex
	c         *condition.Cond
	m         rwModel
	now       int
	deadlines map[int]bool
	parties   [rwParties]*rwParty
}

func newRWPlay(t *testing.T, rw *rwlock.RWMutex) *rwPlay {
	p := &rwPlay{
		rw: rw, c: rw.NewCond(), deadlines: map[int]bool{},
		m: rwModel{writer: -1, reads: map[int]int{}, want: map[int]error{}},
	}
	for i := range p.parties {
		q := &rwParty{ctx: t.Context()}
		if i%2 == 0 {
			q.owner = locks.NewOwner()
			q.ctx = locks.WithOwner(q.ctx, q.owner)
		} else {
			q.calls = make(chan func())
			go func() {
				q.owner = locks.CurrentOwner(q.ctx)
				for f := range q.calls {
					f()
				}
			}()
		}
		q.back.Store(true)
		p.parties[i] = q
	}
	synctest.Wait()
	return p
}

type rwStep struct{ Op, ID, Time int }

var errRefused = errors.New("refused") // stands for false

// step does one thing, and returns where the lock departs from the model.
func (p *rwPlay) step(s rwStep) string {
	const tick = time.Second
	rw, m, q := p.rw, &p.m, p.parties[s.ID]
	if s.Op == 0 {
		time.Sleep(time.Duration(s.Time) * 100 * tick)
		p.now += s.Time * 100
		m.elapse(p.now)
		return p.compare()
	}
	if m.waits(s.ID) {
		if s.Op%4 != 0 {
			return ""
		}
		q.cancel()
		m.giveUp(s.ID, context.Canceled)
		return p.compare()
	}

	id := s.ID
	reader, writer := m.reads[id] > 0, m.writer == id
	// Deadlines are distinct, and between the times at which we look.
	deadline := p.now + s.Time*100 + 1
	for p.deadlines[deadline] {
		deadline++
	}
	p.deadlines[deadline] = true
	limit := time.Duration(deadline-p.now) * tick
	ctx, cancel := context.WithTimeout(q.ctx, limit)
	if q.cancel != nil {
		q.cancel()
	}
	q.cancel = cancel
	tried := func(ok bool, err error) error {
		if err == nil && !ok {
			return errRefused
		}
		return err
	}
	call, want := (func() error)(nil), error(nil)
	switch s.Op {
	case 1, 2, 3: // Lock
		call = func() error { return rw.LockContext(ctx) }
		switch {
		case writer:
			m.holds++
		case reader:
			want = locks.ErrUpgrade
		default:
			m.ask(rwWaiter{id, true, 1, deadline})
		}
	case 4, 5, 6: // RLock
		call = func() error { return rw.RLockContext(ctx) }
		if writer || reader {
			m.reads[id]++
		} else {
			m.ask(rwWaiter{id, false, 0, deadline})
		}
	case 7:
		call = func() error { return tried(rw.TryLockContext(q.ctx)) }
		switch {
		case writer:
			m.holds++
		case reader:
			want = locks.ErrUpgrade
		case m.free():
			m.give(rwWaiter{id: id, write: true, holds: 1})
		default:
			want = errRefused
		}
	case 8:
		call = func() error { return tried(rw.TryRLockContext(q.ctx)) }
		if m.writer < 0 || writer {
			m.reads[id]++ // past the waiters
		} else {
			want = errRefused
		}
	case 9, 10: // Unlock
		call = func() error { return rw.UnlockContext(q.ctx) }
		if !writer {
			want = locks.ErrNotHeld
		} else if m.holds--; m.holds == 0 {
			m.writer = -1
			m.grant()
		}
	case 11, 12: // RUnlock
		call = func() error { return rw.RUnlockContext(q.ctx) }
		if !reader {
			want = locks.ErrNotHeld
		} else if m.reads[id]--; m.reads[id] == 0 {
			delete(m.reads, id)
			m.grant()
		}
	case 13:
		call = func() error { return rw.DowngradeContext(q.ctx) }
		if !writer {
			want = locks.ErrNotHeld
			break
		}
		m.reads[id]++
		if m.holds--; m.holds == 0 {
			m.writer = -1
			m.grant()
		}
	case 14, 15: // TryUpgrade
		call = func() error { return tried(rw.TryUpgradeContext(q.ctx)) }
		switch {
		case !reader:
			want = locks.ErrNotHeld
		case !writer && len(m.reads) > 1:
			want = errRefused
		default:
			if !writer {
				m.writer, m.holds = id, 0
			}
			m.holds++
			if m.reads[id]--; m.reads[id] == 0 {
				delete(m.reads, id)
			}
		}
	case 16, 17: // Wait
		call = func() error { return p.c.WaitContext(ctx) }
		switch {
		case !writer:
			want = locks.ErrNotHeld
		case reader:
			want = locks.ErrUpgrade
		case q.calls == nil && m.holds > 1: // each call of an explicit owner has a goroutine of its own
			want = condition.ErrSharedHolds
		default:
			m.cond = append(m.cond, rwWaiter{id, true, m.holds, deadline})
			m.writer = -1
			m.grant()
		}
	case 18:
		call = func() error { return p.c.SignalContext(q.ctx) }
		if !writer {
			want = locks.ErrNotHeld
		} else if len(m.cond) > 0 {
			w := m.cond[0]
			w.deadline = 0
			m.cond = m.cond[1:]
			m.queue = append(m.queue, w)
		}
	default: // the plain forms with limits, which are for goroutines
		if q.calls == nil {
			return ""
		}
		if s.Op == 19 {
			d := limit
			if s.Time%2 == 0 {
				d = 0
			}
			call = func() error { return tried(rw.TryLockFor(d), nil) }
			switch {
			case writer:
				m.holds++
			case reader:
				want = errRefused
			case d == 0 && !m.free():
				want = errRefused
			case m.free():
				m.ask(rwWaiter{id, true, 1, 0})
			default:
				return "" // its limit is not a context, which is tried elsewhere
			}
		} else {
			call = func() error { return tried(rw.TryRLockFor(0), nil) }
			switch {
			case writer || reader || m.writer < 0 && len(m.queue) == 0:
				m.reads[id]++
			default:
				want = errRefused
			}
		}
	}
	m.want[id] = want
	q.start(call)
	return p.compare()
}

func (p *rwPlay) compare() string {
	synctest.Wait()
	rw, m := p.rw, &p.m
	var owner locks.Owner
	if m.writer >= 0 {
		owner = p.parties[m.writer].owner
	}
	queue := []locks.Owner{}
	for _, w := range m.queue {
		queue = append(queue, p.parties[w.id].owner)
	}
	readers, count := []locks.Owner{}, 0
	for id, n := range m.reads {
		readers = append(readers, p.parties[id].owner)
		count += n
	}
	slices.Sort(readers)
	got := rw.Readers()
	slices.Sort(got)
	switch {
	case rw.Owner() != owner || rw.IsWriteLocked() != (owner != 0):
		return fmt.Sprintf("writer %v, want %v", rw.Owner(), owner)
	case !slices.Equal(got, readers) || rw.ReadLockCount() != count:
		return fmt.Sprintf("readers %v with %d, want %v with %d", got, rw.ReadLockCount(), readers, count)
	case !slices.Equal(rw.Queued(), queue) || rw.QueueLength() != len(queue) || rw.HasQueued() != (len(queue) > 0):
		return fmt.Sprintf("queued %v, want %v", rw.Queued(), queue)
	}
	for id, q := range p.parties {
		if q.back.Load() == m.waits(id) {
			return fmt.Sprintf("%v back: %t", q.owner, q.back.Load())
		}
		if m.waits(id) {
			continue
		}
		if r, ok := q.err.Load().(result); ok && !errors.Is(r.error, m.want[id]) {
			return fmt.Sprintf("the call of %v came back with %v, want %v", q.owner, r.error, m.want[id])
		}
	}
	return ""
}

// end releases all holds, and reports whether there were exactly as many holds as in the model.
func (p *rwPlay) end(problem string) string {
	complain := func(format string, args ...any) {
		if problem == "" {
			problem = fmt.Sprintf(format, args...)
		}
	}
	for _, q := range p.parties {
		if q.cancel != nil {
			defer q.cancel()
			q.cancel()
		}
	}
	synctest.Wait()
	first := len(p.m.queue) == 0 && len(p.m.cond) == 0
	for range 50 {
		for id, q := range p.parties {
			if !q.back.Load() {
				continue
			}
			writeHolds, readHolds := 0, 0
			q.start(func() error {
				for rw := p.rw; rw.UnlockContext(q.ctx) == nil; writeHolds++ {
				}
				for rw := p.rw; rw.RUnlockContext(q.ctx) == nil; readHolds++ {
				}
				return nil
			})
			synctest.Wait()
			if !first {
				continue
			}
			if want := p.m.reads[id]; readHolds != want {
				complain("%v had %d read holds, want %d", q.owner, readHolds, want)
			}
			if want := map[bool]int{true: p.m.holds}[p.m.writer == id]; writeHolds != want {
				complain("%v had %d write holds, want %d", q.owner, writeHolds, want)
			}
		}
		first = false
	}
	if p.rw.IsWriteLocked() || p.rw.ReadLockCount() > 0 || p.rw.HasQueued() || !p.rw.TryLock() {
		complain("not free in the end: %v", p.rw)
	} else {
		p.rw.Unlock()
	}
	for _, q := range p.parties {
		if q.calls != nil {
			close(q.calls)
		}
	}
	return problem
}

func TestEveryRunAgreesWithTheModel(t *testing.T) {
	for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(policy.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rwStep {
					return rwStep{
						rapid.IntRange(0, 20).Draw(t, "op"),
						rapid.IntRange(0, rwParties-1).Draw(t, "id"),
						rapid.IntRange(1, 5).Draw(t, "time"),
					}
				}), 10, 150).Draw(rt, "script")
				var problem string
				synctest.Test(t, func(t *testing.T) {
					p := newRWPlay(t, rwlock.New(policy))
					for i, s := range script {
						if problem = p.step(s); problem != "" {
							problem = fmt.Sprintf("step %d %+v: %s; model %+v", i, s, problem, maps.Clone(p.m.reads))
							break
						}
					}
					problem = p.end(problem)
				})
				if problem != "" {
					rt.Fatal(problem)
				}
			})
		})
	}
}
