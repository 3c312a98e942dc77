package deadlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// The model: the holds and the waits, in their order, as the parties themselves know them when all
// rest; and a search for cycles that tries every path.
type model struct {
	parties []*party
	locks   []modelLock
	asks    []*ask // of each party: what it waits for, or nil
}

type modelLock struct {
	lock    locks.Locker // the exclusive side
	reader  locks.Locker // or nil
	writers []int        // a hold each, all of one party
	readers []int
	queue   []*ask
}

type ask struct {
	party, lock int
	shared      bool
}

// modelEdge says that the party from waits for the party to.
type modelEdge struct {
	from, to int
	behind   bool
}

// edges returns what keeps a out. With all, also those that add no deadlock: everybody ahead
// who excludes a.
func (m *model) edges(a *ask, all bool) (es []modelEdge) {
	l := &m.locks[a.lock]
	ahead := l.queue[:slices.Index(l.queue, a)]
	switch {
	case len(l.writers) > 0:
		es = append(es, modelEdge{a.party, l.writers[0], false})
	case !a.shared:
		for _, r := range l.readers {
			es = append(es, modelEdge{a.party, r, false})
		}
	default:
		for _, b := range slices.Backward(ahead) {
			if !b.shared {
				es = append(es, modelEdge{a.party, b.party, true})
				break
			}
		}
	}
	if all {
		for _, b := range ahead {
			if !a.shared || !b.shared {
				es = append(es, modelEdge{a.party, b.party, true})
			}
		}
	}
	return es
}

// cycles returns all simple cycles, each starting with its least party, whose edges are
// in use.
func (m *model) cycles(all bool, use func(modelEdge) bool) (found [][]modelEdge) {
	var walk func(path []modelEdge, start, at int)
	walk = func(path []modelEdge, start, at int) {
		if m.asks[at] == nil {
			return
		}
		for _, e := range m.edges(m.asks[at], all) {
			switch {
			case !use(e):
			case e.to == start:
				found = append(found, append(slices.Clone(path), e))
			case e.to > start && !slices.ContainsFunc(path, func(f modelEdge) bool { return f.from == e.to }):
				walk(append(path, e), start, e.to)
			}
		}
	}
	for p := range m.parties {
		walk(nil, p, p)
	}
	return found
}

func everyEdge(modelEdge) bool { return true }

// certain reports whether no explicit owner can open e.
func (m *model) certain(e modelEdge) bool { return e.behind || m.parties[e.to].me > 0 }

// settle takes over the outcomes of the waits.
func (m *model) settle() error {
	for i, a := range m.asks {
		if a == nil || !m.parties[i].back {
			continue
		}
		m.asks[i] = nil
		l := &m.locks[a.lock]
		l.queue = slices.DeleteFunc(l.queue, func(b *ask) bool { return a == b })
		switch err := m.parties[i].err; {
		case errors.Is(err, context.Canceled):
			m.parties[i].ctx, m.parties[i].cancel = context.WithCancel(context.WithoutCancel(m.parties[i].ctx))
		case err != nil:
			return fmt.Errorf("the wait of %d ended with %w", i, err)
		case a.shared:
			l.readers = append(l.readers, i)
		default:
			l.writers = append(l.writers, i)
		}
	}
	return nil
}

// acquire asks for a lock as party i, and checks that the party is refused if and only if a cycle
// closes.
func (m *model) acquire(i, lock int, shared, refuse bool) error {
	l, p := &m.locks[lock], m.parties[i]
	if l.reader == nil {
		shared = false
	}
	which := l.lock
	if shared {
		which = l.reader
	} else if slices.Contains(l.readers, i) {
		return nil // a reader that asks to write does not wait
	}
	err := p.lock(which)
	a := &ask{i, lock, shared}
	if p.back && err == nil {
		if shared {
			l.readers = append(l.readers, i)
		} else {
			l.writers = append(l.writers, i)
		}
		return nil
	}
	m.asks[i] = a
	l.queue = append(l.queue, a)
	closes := slices.ContainsFunc(m.cycles(false, m.certain), func(c []modelEdge) bool {
		return slices.ContainsFunc(c, func(e modelEdge) bool { return e.from == i })
	})
	want := refuse && p.me > 0 && closes
	switch {
	case errors.Is(err, locks.ErrDeadlock):
		m.asks[i] = nil
		l.queue = l.queue[:len(l.queue)-1]
		if !want {
			return errors.New("refused without a cycle")
		}
	case p.back:
		return fmt.Errorf("the acquisition failed: %w", err)
	case want:
		return errors.New("not refused")
	}
	return nil
}

// release gives one hold of party i back, if it has any.
func (m *model) release(i, which int) error {
	for k := range m.locks {
		l := &m.locks[(which+k)%len(m.locks)]
		var err error
		if at := slices.Index(l.writers, i); at >= 0 {
			l.writers = slices.Delete(l.writers, at, at+1)
			m.parties[i].run(func() { err = l.lock.UnlockContext(m.parties[i].ctx) })
			return err
		}
		if at := slices.Index(l.readers, i); at >= 0 {
			l.readers = slices.Delete(l.readers, at, at+1)
			m.parties[i].run(func() { err = l.reader.UnlockContext(m.parties[i].ctx) })
			return err
		}
	}
	return nil
}

// compare checks Find's answer.
func (m *model) compare() error {
	index := make(map[locks.Owner]int)
	for i, p := range m.parties {
		index[p.me] = i
	}
	want := m.cycles(false, everyEdge)
	edges := make(map[modelEdge]bool) // the edges on a cycle; true once Find has shown the edge
	for _, c := range want {
		for _, e := range c {
			edges[e] = false
		}
	}
	if all := m.cycles(true, everyEdge); (len(all) > 0) != (len(want) > 0) {
		return fmt.Errorf("the edges that are left out matter: %v", all)
	}
	for _, c := range deadlock.Find() {
		var got []modelEdge
		for k, w := range c {
			if w.For != c[(k+1)%len(c)].Party {
				return fmt.Errorf("the cycle is not closed: %v", c)
			}
			e := modelEdge{index[w.Party], index[w.For], w.Behind}
			got = append(got, e)
			edges[e] = true
		}
		byParty := func(a, b modelEdge) int { return int(m.parties[a.from].me - m.parties[b.from].me) }
		if least := slices.MinFunc(got, byParty); least != got[0] {
			return fmt.Errorf("the cycle does not start with its least party: %v", c)
		}
		at := slices.IndexFunc(got, func(e modelEdge) bool {
			return !slices.ContainsFunc(got, func(f modelEdge) bool { return f.from < e.from })
		})
		got = slices.Concat(got[at:], got[:at])
		if !slices.ContainsFunc(want, func(c []modelEdge) bool { return slices.Equal(c, got) }) {
			return fmt.Errorf("no such cycle: %v", c)
		}
	}
	for e, shown := range edges {
		if !shown {
			return fmt.Errorf("%v is on a cycle, and not found", e)
		}
	}
	return nil
}

func TestFindAgreesWithAnExhaustiveSearch(t *testing.T) {
	for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, refusing: %t", policy, refuse), func(t *testing.T) {
				cycles, refused := 0, 0
				rapid.Check(t, func(rt *rapid.T) {
					explicit := rapid.SliceOfN(rapid.IntRange(0, 4), 2, 7).Draw(rt, "explicit if 0")
					readable := rapid.SliceOfN(rapid.Bool(), 2, 5).Draw(rt, "readable")
					type step struct {
						Op, Party, Lock int
						Shared          bool
					}
					script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
						return step{
							rapid.IntRange(0, 9).Draw(t, "op"), rapid.IntRange(0, len(explicit)-1).Draw(t, "party"),
							rapid.IntRange(0, len(readable)-1).Draw(t, "lock"), rapid.Bool().Draw(t, "shared"),
						}
					}), 4, 40).Draw(rt, "script")
					var problem error
					synctest.Test(t, func(t *testing.T) {
						deadlock.Refuse(refuse)
						defer deadlock.Refuse(false)
						m := &model{asks: make([]*ask, len(explicit))}
						for _, e := range explicit {
							ctx := t.Context()
							if e == 0 {
								ctx = locks.WithOwner(ctx, locks.NewOwner())
							}
							m.parties = append(m.parties, newParty(ctx))
						}
						defer func() { end(m.parties...) }()
						for _, r := range readable {
							if r {
								l := rwlock.New(policy)
								m.locks = append(m.locks, modelLock{lock: l, reader: l.ReadLocker()})
							} else {
								m.locks = append(m.locks, modelLock{lock: reentrant.New(policy)})
							}
						}
						for _, s := range script {
							waits := m.asks[s.Party] != nil
							switch {
							case waits && s.Op == 0:
								m.parties[s.Party].cancel()
								synctest.Wait()
							case waits:
								continue
							case s.Op <= 7:
								problem = m.acquire(s.Party, s.Lock, s.Shared, refuse)
							default:
								problem = m.release(s.Party, s.Lock)
							}
							if problem == nil {
								problem = m.settle()
							}
							if problem == nil {
								problem = m.compare()
							}
							if problem != nil {
								return
							}
							cycles += len(m.cycles(false, everyEdge))
							if errors.Is(m.parties[s.Party].err, locks.ErrDeadlock) {
								refused++
							}
						}
					})
					if problem != nil {
						rt.Fatal(problem)
					}
				})
				t.Logf("%d cycles, %d refused", cycles, refused)
			})
		}
	}
}
