package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/rwlock"
)

// stampedModel is the state of a StampedLock when all goroutines rest: how it is held, at which
// version, and which goroutines wait. Stamps are modelled as a version and a mode.
type stampedModel struct {
	version int
	writing bool
	readers int
	queue   []stampedWaiter
}

type stampedWaiter struct {
	id, deadline int // deadline 0: none; in milliseconds
	read         bool
	firm         bool // has no context that could be cancelled
}

type modelStamp struct {
	version int
	mode    string // "write", "read", "optimistic"; "" for 0
}

func (m *stampedModel) free() bool { return !m.writing && m.readers == 0 }

// valid is Validate.
func (m *stampedModel) valid(st modelStamp) bool {
	return st.mode != "" && st.version == m.version && m.writing == (st.mode == "write")
}

// holds reports whether there is a hold that st fits.
func (m *stampedModel) holds(st modelStamp) bool {
	return m.valid(st) && (st.mode == "write" || st.mode == "read" && m.readers > 0)
}

func (m *stampedModel) stamp(mode string) modelStamp { return modelStamp{m.version, mode} }

func (m *stampedModel) enter(read bool) modelStamp {
	if read {
		m.readers++
		return m.stamp("read")
	}
	m.writing = true
	return m.stamp("write")
}

func (m *stampedModel) leave(st modelStamp) {
	if st.mode == "read" {
		m.readers--
	} else {
		m.writing = false
		m.version++
	}
}

// admit admits the waiters whose turn it is, and adds their stamps to in.
func (m *stampedModel) admit(in map[int]modelStamp) {
	for len(m.queue) > 0 && !m.writing && (m.queue[0].read || m.readers == 0) {
		in[m.queue[0].id] = m.enter(m.queue[0].read)
		m.queue = m.queue[1:]
	}
}

// expire takes out the waiter whose deadline is the first to come until now, and reports whether
// there is one.
func (m *stampedModel) expire(now int) bool {
	at := -1
	for i, w := range m.queue {
		if w.deadline > 0 && w.deadline <= now && (at < 0 || w.deadline < m.queue[at].deadline) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	m.queue = slices.Delete(m.queue, at, at+1)
	return true
}

func (m *stampedModel) convert(st modelStamp, to string) modelStamp {
	ok := m.valid(st) && (st.mode == "optimistic" || m.holds(st))
	switch {
	case !ok:
		return modelStamp{}
	case st.mode == to:
		return st
	case to == "write" && st.mode == "read" && m.readers != 1,
		to == "write" && st.mode == "optimistic" && m.readers > 0:
		return modelStamp{}
	}
	if st.mode != "optimistic" {
		if to == "write" { // of the version of the read hold
			m.readers--
		} else {
			m.leave(st)
		}
	}
	switch to {
	case "write":
		return m.enter(false)
	case "read":
		return m.enter(true)
	}
	return m.stamp("optimistic")
}

const stampedParties = 5

// stampedPlay runs one StampedLock together with its model.
type stampedPlay struct {
	l      *rwlock.StampedLock
	m      stampedModel
	now    int // in milliseconds
	limits int // how many waits there were
	cancel [stampedParties]context.CancelFunc
	got    [stampedParties]atomic.Uint64 // the stamp that the last wait ended with
	back   [stampedParties]atomic.Bool
	// These are all stamps ever issued, good and bad, with their models. Each operation on a stamp
	// takes any of them.
	stamps []rwlock.Stamp
	models []modelStamp
}

func (p *stampedPlay) waits(id int) bool {
	return slices.ContainsFunc(p.m.queue, func(w stampedWaiter) bool { return w.id == id })
}

// issued compares a stamp with the stamp of the model, and keeps it.
func (p *stampedPlay) issued(op string, got rwlock.Stamp, want modelStamp) string {
	mode := map[bool]string{true: "?"}[got != 0]
	switch {
	case got.IsWriteLock():
		mode = "write"
	case got.IsReadLock():
		mode = "read"
	case got.IsOptimisticRead():
		mode = "optimistic"
	}
	if mode != want.mode {
		return fmt.Sprintf("%s: got %#x, want %+v", op, uint64(got), want)
	}
	for i, other := range p.models {
		if (p.stamps[i] == got) != (other == want) {
			return fmt.Sprintf("%s: %#x for %+v, but %#x for %+v", op, uint64(got), want, uint64(p.stamps[i]), other)
		}
	}
	p.stamps, p.models = append(p.stamps, got), append(p.models, want)
	return ""
}

type stampedStep struct {
	Op, ID, Time, Stamp int
	Table               bool // readers enter the table from then on
}

func (p *stampedPlay) step(s stampedStep) string {
	l, m, id := p.l, &p.m, s.ID
	k := len(p.stamps) - 1 - s.Stamp%len(p.stamps) // the newest first
	st, ms := p.stamps[k], p.models[k]
	before, in := slices.Clone(m.queue), map[int]modelStamp{}
	if s.Table {
		rwlock.OpenStampedTable(l)
	}
	bad := ""
	mustPanic := func(f func()) (msg string) {
		defer func() {
			if r := recover(); !isNotHeld(r) {
				msg = fmt.Sprintf("unlock of %+v panicked with %v", ms, r)
			}
		}()
		f()
		return "unlock of " + fmt.Sprintf("%+v", ms) + " did not panic"
	}
	switch s.Op {
	case 0:
		p.now += s.Time * 1000
		for m.expire(p.now) {
			m.admit(in)
		}
		time.Sleep(time.Duration(s.Time) * time.Second)
	case 1:
		gone := func(w stampedWaiter) bool { return w.id == id && !w.firm }
		if slices.ContainsFunc(m.queue, gone) {
			p.cancel[id]()
			m.queue = slices.DeleteFunc(m.queue, gone)
		}
	case 2, 3, 4, 5, 6, 7: // the Context forms, without a deadline or with one, and the For forms
		if p.waits(id) {
			return ""
		}
		read, deadline := s.Op%2 == 1, 0
		// Deadlines are distinct, and between the points at which we look.
		p.limits++
		wait := s.Time*1000 - 500 + p.limits
		d := time.Duration(wait) * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		var call func() rwlock.Stamp
		if s.Op >= 4 {
			deadline = p.now + wait
		}
		switch {
		case s.Op >= 6 && read:
			call = func() rwlock.Stamp { return l.TryReadLockFor(d) }
		case s.Op >= 6:
			call = func() rwlock.Stamp { return l.TryWriteLockFor(d) }
		default:
			if deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, d)
			}
			lock := l.WriteLockContext
			if read {
				lock = l.ReadLockContext
			}
			call = func() rwlock.Stamp { st, _ := lock(ctx); return st }
		}
		p.cancel[id] = cancel
		p.back[id].Store(false)
		go func() {
			p.got[id].Store(uint64(call()))
			p.back[id].Store(true)
		}()
		w := stampedWaiter{id, deadline, read, s.Op >= 6}
		m.queue = append(m.queue, w)
		before = append(before, w)
	case 8:
		want := modelStamp{}
		if m.free() {
			want = m.enter(false)
		}
		bad = p.issued("TryWriteLock", l.TryWriteLock(), want)
	case 9:
		want := modelStamp{}
		if !m.writing {
			want = m.enter(true)
		}
		bad = p.issued("TryReadLock", l.TryReadLock(), want)
	case 10:
		want := modelStamp{}
		if !m.writing {
			want = m.stamp("optimistic")
		}
		bad = p.issued("TryOptimisticRead", l.TryOptimisticRead(), want)
	case 11:
		want := m.convert(ms, "write")
		bad = p.issued(fmt.Sprintf("TryConvertToWriteLock(%+v)", ms), l.TryConvertToWriteLock(st), want)
	case 12:
		want := m.convert(ms, "read")
		bad = p.issued(fmt.Sprintf("TryConvertToReadLock(%+v)", ms), l.TryConvertToReadLock(st), want)
	case 13:
		want := m.convert(ms, "optimistic")
		bad = p.issued(fmt.Sprintf("TryConvertToOptimisticRead(%+v)", ms), l.TryConvertToOptimisticRead(st), want)
	case 14:
		if got := l.TryUnlockWrite(); got != m.writing {
			return fmt.Sprint("TryUnlockWrite ", got)
		} else if got {
			m.leave(m.stamp("write"))
		}
	case 15:
		if got := l.TryUnlockRead(); got != (m.readers > 0) {
			return fmt.Sprint("TryUnlockRead ", got)
		} else if got {
			m.leave(m.stamp("read"))
		}
	default:
		unlock := map[int]func(rwlock.Stamp){16: l.UnlockWrite, 17: l.UnlockRead}[s.Op]
		if unlock == nil {
			unlock = l.Unlock
		}
		fits := m.holds(ms) && (s.Op > 17 || ms.mode == map[int]string{16: "write", 17: "read"}[s.Op])
		if !fits {
			bad = mustPanic(func() { unlock(st) })
			break
		}
		unlock(st)
		m.leave(ms)
	}
	if bad != "" {
		return bad
	}
	m.admit(in)
	synctest.Wait()
	for _, w := range before {
		if p.waits(w.id) {
			if p.back[w.id].Load() {
				return fmt.Sprintf("%d should wait, but got %#x", w.id, p.got[w.id].Load())
			}
			continue
		}
		if !p.back[w.id].Load() {
			return fmt.Sprintf("%d should not wait", w.id)
		}
		if bad := p.issued(fmt.Sprintf("the wait of %d", w.id), rwlock.Stamp(p.got[w.id].Load()), in[w.id]); bad != "" {
			return bad
		}
		p.cancel[w.id] = nil
	}
	return p.compare(s.Table)
}

// compare compares the lock with its model. If the table is to stay open, it does not ask the lock
// for its readers.
func (p *stampedPlay) compare(open bool) string {
	l, m := p.l, &p.m
	if inWord, inTable := rwlock.StampedHolds(l); inWord+inTable != m.readers {
		return fmt.Sprintf("has %d + %d read holds, should be %+v", inWord, inTable, *m)
	}
	if l.IsWriteLocked() != m.writing ||
		!open && (l.IsReadLocked() != (m.readers > 0) || l.ReadLockCount() != m.readers) ||
		l.QueueLength() != len(m.queue) || l.HasQueued() != (len(m.queue) > 0) {
		return fmt.Sprintf("is %v, should be %+v", l, *m)
	}
	for i, st := range p.stamps {
		if l.Validate(st) != m.valid(p.models[i]) {
			return fmt.Sprintf("Validate(%+v) is %t", p.models[i], l.Validate(st))
		}
	}
	if err := rwlock.VerifyStamped(l); err != nil {
		return err.Error()
	}
	return ""
}

// isNotHeld reports whether r, the value of a panic, is one for the lack of a hold.
func isNotHeld(r any) bool {
	err, _ := r.(error)
	return errors.Is(err, locks.ErrNotHeld)
}

func TestEveryRunOfStampedLockAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stampedStep {
			return stampedStep{
				rapid.IntRange(0, 19).Draw(t, "op"), rapid.IntRange(0, stampedParties-1).Draw(t, "id"),
				rapid.IntRange(1, 5).Draw(t, "time"), rapid.IntRange(0, 6).Draw(t, "stamp"),
				rapid.Bool().Draw(t, "table"),
			}
		}), 5, 80).Draw(rt, "script")
		version := rapid.SampledFrom([]uint64{0, 1<<50 - 3, 7}).Draw(rt, "version")
		var problem string
		synctest.Test(t, func(*testing.T) {
			p := &stampedPlay{l: new(rwlock.StampedLock), stamps: []rwlock.Stamp{0}, models: []modelStamp{{}}}
			rwlock.SetStampedVersion(p.l, version)
			for i, s := range script {
				if problem = p.step(s); problem != "" {
					problem = fmt.Sprintf("step %d %+v: %s", i, s, problem)
					break
				}
			}
			for _, cancel := range p.cancel { // take down
				if cancel != nil {
					cancel()
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for p.l.TryUnlockRead() || p.l.TryUnlockWrite() {
				synctest.Wait()
			}
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}
