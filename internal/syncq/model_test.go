package syncq_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jucgo/locks/internal/syncq"
)

// The model is the state of a lock and of one of its conditions when all goroutines have come to
// rest. Both policies have the same such states, and differ only in between.
type model struct {
	holder int          // the exclusive holder, or 0
	shared map[int]bool // the shared holders
	queue  []waiter
	cond   []waiter
}

type waiter struct {
	id       int
	shared   bool
	deadline int // 0: none
}

func (m *model) free() bool { return m.holder == 0 && len(m.shared) == 0 }

func (m *model) lock(w waiter) {
	switch {
	case m.free() && w.shared, w.shared && m.holder == 0 && len(m.queue) == 0:
		m.shared[w.id] = true
	case m.free():
		m.holder = w.id
	default:
		m.queue = append(m.queue, w)
	}
}

// extend lets the readers at the head of the queue join.
func (m *model) extend() {
	for m.holder == 0 && len(m.shared) > 0 && len(m.queue) > 0 && m.queue[0].shared {
		m.shared[m.queue[0].id] = true
		m.queue = m.queue[1:]
	}
}

// grant gives a free lock to the first waiter.
func (m *model) grant() {
	if !m.free() || len(m.queue) == 0 {
		return
	}
	first := m.queue[0]
	m.queue = m.queue[1:]
	m.lock(waiter{id: first.id, shared: first.shared})
	m.extend()
}

func (m *model) release(id int) {
	if m.holder == id {
		m.holder = 0
	}
	delete(m.shared, id)
	m.grant()
}

// elapse lets the time come to now.
func (m *model) elapse(now int) {
	for {
		expired := func(w waiter) bool { return w.deadline > 0 && w.deadline <= now }
		earliest := func(ws []waiter) int {
			at := -1
			for i, w := range ws {
				if expired(w) && (at < 0 || w.deadline < ws[at].deadline) {
					at = i
				}
			}
			return at
		}
		q, c := earliest(m.queue), earliest(m.cond)
		switch {
		case q < 0 && c < 0:
			return
		case c < 0 || q >= 0 && m.queue[q].deadline < m.cond[c].deadline:
			m.queue = slices.Delete(m.queue, q, q+1)
			if q == 0 {
				m.extend()
			}
		default:
			w := m.cond[c]
			m.cond = slices.Delete(m.cond, c, c+1)
			w.deadline = 0 // the lock is awaited without limit
			m.lock(w)
		}
	}
}

func (m *model) String() string {
	ids := func(ws []waiter) (out []int) {
		for _, w := range ws {
			out = append(out, w.id)
		}
		return out
	}
	readers := make([]int, 0)
	for id := range m.shared {
		readers = append(readers, id)
	}
	slices.Sort(readers)
	return fmt.Sprint("holder ", m.holder, " readers ", readers, " queue ", ids(m.queue), " cond ", ids(m.cond))
}

// party is one user of the lock, with at most one call under way.
type party struct {
	id    int
	busy  atomic.Bool
	holds atomic.Value // "", "exclusive", "shared", or "read": shared, through the read table
}

func (p *party) has() string { return p.holds.Load().(string) }

type step struct {
	Op     string // chosen by choice from what is possible
	choice int
	ID     int // 0: only the time goes on
	Time   int // how long a limited wait takes, or until when the time goes on
}

// These are the operations that a party may do next.
var (
	idleOps = []string{
		"Lock", "LockFor", "LockContext", "TryLock",
		"LockShared", "LockShared", "LockSharedFor", "LockSharedContext", "TryLockShared",
		"Read", "ReadBiased", "ReadFor", "ReadContext", "TryRead",
	}
	exclusiveOps = []string{
		"Unlock", "Unlock", "Unlock", "Downgrade", "Wait", "WaitFor", "WaitContext", "Signal", "Broadcast",
	}
	sharedOps = []string{"Unlock"}
	readOps   = []string{"ReleaseRead", "ReleaseRead", "Upgrade"}
)

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		st := step{ID: rapid.IntRange(0, 6).Draw(t, "id"), Time: rapid.IntRange(0, 20).Draw(t, "time")}
		st.choice = rapid.IntRange(0, 125).Draw(t, "choice")
		return st
	}), 10, 150)
}

func TestEveryRunAgreesWithModelWhenAllRest(t *testing.T) {
	check := func(name string, policy syncq.Policy) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				script := steps().Draw(rt, "steps")
				var problem string
				synctest.Test(t, func(*testing.T) { problem = run(script, policy) })
				if problem != "" {
					rt.Fatal(problem)
				}
			})
		})
	}
	check("FIFO=false", syncq.NonFair)
	check("FIFO=true", syncq.FIFO)
}

// run executes the script, and returns where it departed from the model. Whatever is left at its
// end it takes down, so that the bubble can end.
func run(script []step, policy syncq.Policy) (problem string) {
	const tick = time.Second
	var (
		s       = syncq.NewReadWrite(policy)
		c       = s.NewCond()
		m       = model{shared: map[int]bool{}}
		parties [7]*party
		now     int
	)
	for i := range parties {
		parties[i] = &party{id: i}
		parties[i].holds.Store("")
	}
	// Deadlines are distinct, and between the ticks at which we look.
	deadlines := map[int]bool{}
	deadline := func(after int) int {
		d := now + after*100
		for d++; deadlines[d]; d++ {
		}
		deadlines[d] = true
		return d
	}
	until := func(d int) time.Duration { return time.Duration(d-now) * tick }
	ctxUntil := func(d int) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), until(d))
	}

	do := func(st *step) bool {
		p := parties[st.ID]
		who := syncq.Owned(int64(st.ID))
		call := func(holds string, f func() bool) {
			p.busy.Store(true)
			go func() {
				if f() {
					p.holds.Store(holds)
				}
				p.busy.Store(false)
			}()
		}
		if st.ID == 0 {
			st.Op = "elapse"
			time.Sleep(time.Duration(st.Time) * 100 * tick)
			now += st.Time * 100
			m.elapse(now)
			return true
		}
		if p.busy.Load() {
			return false
		}
		ops := map[string][]string{
			"": idleOps, "exclusive": exclusiveOps, "shared": sharedOps, "read": readOps,
		}[p.has()]
		st.Op = ops[st.choice%len(ops)]
		w := waiter{id: st.ID}
		switch st.Op {
		case "Lock":
			call("exclusive", func() bool { s.Lock(who); return true })
			m.lock(w)
		case "LockFor":
			w.deadline = deadline(st.Time)
			d := until(w.deadline)
			call("exclusive", func() bool { return s.LockFor(who, d) })
			m.lock(w)
		case "LockContext":
			w.deadline = deadline(st.Time)
			ctx, cancel := ctxUntil(w.deadline)
			call("exclusive", func() bool { defer cancel(); return s.LockContext(ctx, who) == syncq.Acquired })
			m.lock(w)
		case "TryLock":
			call("exclusive", func() bool { return s.TryLock(who) || s.TryLockUnread(who) })
			if m.free() {
				m.lock(w)
			}
		case "LockShared":
			w.shared = true
			call("shared", func() bool { s.LockShared(syncq.Owned(int64(st.ID))); return true })
			m.lock(w)
		case "LockSharedFor":
			w.shared, w.deadline = true, deadline(st.Time)
			d := until(w.deadline)
			call("shared", func() bool { return s.LockSharedFor(syncq.Owned(int64(st.ID)), d) })
			m.lock(w)
		case "LockSharedContext":
			w.shared, w.deadline = true, deadline(st.Time)
			ctx, cancel := ctxUntil(w.deadline)
			call("shared", func() bool {
				defer cancel()
				return s.LockSharedContext(ctx, syncq.Owned(int64(st.ID))) == syncq.Acquired
			})
			m.lock(w)
		case "TryLockShared":
			call("shared", func() bool { return s.TryLockShared() })
			if m.holder == 0 {
				m.shared[st.ID] = true
			}
		case "Unlock":
			call("", func() bool { p.holds.Store(""); s.Unlock(); return false })
			m.release(st.ID)
		case "Read":
			w.shared = true
			call("read", func() bool { return s.Read(syncq.Owned(int64(st.ID))) })
			m.lock(w)
		case "ReadBiased":
			w.shared = true
			call("read", func() bool { return s.ReadBiased(int64(st.ID)) })
			m.lock(w)
		case "ReadFor":
			w.shared, w.deadline = true, deadline(st.Time)
			d := until(w.deadline)
			call("read", func() bool { return s.ReadFor(syncq.Owned(int64(st.ID)), d) })
			m.lock(w)
		case "ReadContext":
			w.shared, w.deadline = true, deadline(st.Time)
			ctx, cancel := ctxUntil(w.deadline)
			call("read", func() bool {
				defer cancel()
				return s.ReadContext(ctx, syncq.Owned(int64(st.ID))) == syncq.Acquired
			})
			m.lock(w)
		case "TryRead":
			call("read", func() bool { return s.TryRead(int64(st.ID)) })
			if m.holder == 0 {
				m.shared[st.ID] = true
			}
		case "ReleaseRead":
			call("", func() bool { p.holds.Store(""); s.ReleaseRead(int64(st.ID)); return false })
			m.release(st.ID)
		case "Upgrade":
			call("exclusive", func() bool { return s.Upgrade(int64(st.ID)) == syncq.Acquired })
			if len(m.shared) == 1 {
				delete(m.shared, st.ID)
				m.holder = st.ID
			}
		case "Downgrade":
			call("read", func() bool {
				return s.Downgrade(int64(st.ID)) == syncq.Acquired
			})
			m.holder, m.shared[st.ID] = 0, true
			m.extend()
		case "Wait", "WaitFor", "WaitContext":
			p.holds.Store("")
			s.Holds = int32(st.Time)
			saved := func() bool {
				if s.Holds != int32(st.Time) {
					problem = fmt.Sprintf("%d came back from a wait with %d more holds, not %d",
						st.ID, s.Holds, st.Time)
				}
				s.Holds = 0
				return true
			}
			switch st.Op {
			case "Wait":
				call("exclusive", func() bool { c.Wait(who, nil); return saved() })
			case "WaitFor":
				w.deadline = deadline(st.Time)
				d := until(w.deadline)
				call("exclusive", func() bool { c.WaitFor(who, d); return saved() })
			case "WaitContext":
				w.deadline = deadline(st.Time)
				ctx, cancel := ctxUntil(w.deadline)
				call("exclusive", func() bool { defer cancel(); c.WaitContext(ctx, who); return saved() })
			}
			m.cond = append(m.cond, w)
			m.release(st.ID)
		case "Signal":
			c.Signal()
			if len(m.cond) > 0 {
				w := m.cond[0]
				w.deadline = 0
				m.cond = m.cond[1:]
				m.queue = append(m.queue, w)
			}
		case "Broadcast":
			c.Broadcast()
			for _, w := range m.cond {
				w.deadline = 0
				m.queue = append(m.queue, w)
			}
			m.cond = nil
		}
		return true
	}

	compare := func() string {
		synctest.Wait()
		got := model{shared: map[int]bool{}}
		inTable := 0
		for _, p := range parties {
			switch p.has() {
			case "exclusive":
				if got.holder != 0 {
					return fmt.Sprintf("both %d and %d hold", got.holder, p.id)
				}
				got.holder = p.id
			case "shared":
				got.shared[p.id] = true
			case "read":
				got.shared[p.id] = true
				inTable++
			}
		}
		for _, id := range s.Waiters() {
			got.queue = append(got.queue, waiter{id: int(id)})
		}
		for _, id := range c.Waiters() {
			got.cond = append(got.cond, waiter{id: int(id)})
		}
		if got.String() != m.String() {
			return "is " + got.String() + ", should be " + m.String()
		}
		if err := s.Verify(); err != nil {
			return err.Error()
		}
		if int64(m.holder) != s.Owner() || len(m.shared)-s.Under() != s.Shared()-s.TakenByTable() ||
			s.ReadCount() != inTable || s.Idle() != m.free() || s.Len() != len(m.queue) ||
			s.HasQueued() != (len(m.queue) > 0) || c.Len() != len(m.cond) {
			return "inspection disagrees with " + m.String()
		}
		return ""
	}

	for i, st := range script {
		if !do(&st) {
			continue
		}
		if bad := compare(); bad != "" && problem == "" {
			problem = fmt.Sprintf("after step %d %+v: %s", i, st, bad)
		}
		if problem != "" {
			break
		}
	}

	// Take down: let every holder release until nobody is left.
	for range 1000 {
		synctest.Wait()
		idle := true
		for _, p := range parties {
			idle = idle && !p.busy.Load() && p.has() == ""
		}
		if idle {
			break
		}
		for _, p := range parties {
			has := p.has()
			p.holds.Store("")
			switch has {
			case "exclusive":
				c.Broadcast()
				s.Holds = 0
				s.Unlock()
			case "shared":
				s.Unlock()
			case "read":
				s.ReleaseRead(int64(p.id))
			}
			synctest.Wait()
		}
		if s.Idle() && c.Len() > 0 {
			s.Lock(syncq.Owned(100))
			c.Broadcast()
			s.Unlock()
		}
	}
	synctest.Wait()
	if problem == "" {
		if err := s.Verify(); err != nil {
			problem = err.Error()
		} else if !s.Idle() || s.Len() > 0 {
			problem = "not free in the end"
		}
	}
	return problem
}
