package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

type action string

// The calls and events in the history of a lock.
const (
	acquired action = "acquired"
	refused  action = "refused"
	extended action = "extended"
	released action = "released"
	lapsed   action = "lapsed" // the holder died, or was told that the hold is lost
)

// deed is one thing that a client did.
type deed struct {
	action action
	client int
	token  uint64
}

// held is the state of the model: the client that has the lock, or 0, and the highest token.
type held struct {
	client int
	token  uint64
}

// leaseLock is the sequential specification of a lock with leases. If strict is set, a refusal
// needs a holder that explains it.
func leaseLock(strict bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return held{} },
		Step: func(state, in, _ any) (bool, any) {
			h, d := state.(held), in.(deed)
			mine := h.client == d.client
			switch d.action {
			case acquired:
				ok := h.client == 0 && (d.token == 0 || d.token > h.token)
				return ok, held{d.client, max(d.token, h.token)}
			case refused:
				return !strict || h.client != 0, h
			case extended:
				return mine, h
			case released:
				return mine, held{0, h.token}
			}
			if mine { // lapsed
				h.client = 0
			}
			return true, h
		},
		DescribeOperation: func(in, _ any) string {
			d := in.(deed)
			return fmt.Sprintf("client %d: %s, token %d", d.client, d.action, d.token)
		},
	}
}

// writer is one goroutine that writes a history, with one client after the other.
type writer struct {
	*crew
	began  time.Time
	strict bool
	random *rand.Rand
	c      *client
	ops    []porcupine.Operation
	failed bool // a try, which may have had the lock for a while
}

func (w *writer) now() int64 { return time.Since(w.began).Nanoseconds() }

func (w *writer) wrote(a action, call, end int64, token uint64) {
	w.ops = append(w.ops, porcupine.Operation{
		ClientId: w.c.n, Input: deed{a, w.c.n, token}, Call: call, Return: end,
	})
}

// history records what clients do at random, and looks for an order that explains it. In a strict
// history, clients only try. In others they wait and die, too.
func history(s *suite) {
	const length = 15
	seed := s.checkSeed()
	for round, strict := range []bool{true, false, true, false} {
		var (
			name    = s.name()
			writers = make([]*writer, 4)
			began   = time.Now()
			team    = s.crew()
		)
		spare := make(chan *client, 1) // takes the place of the client that dies
		open := s.client
		if !strict {
			open = s.mortal
		}
		dies := open()
		for i := range writers {
			c := dies
			if i > 0 {
				c = s.client()
			}
			writers[i] = &writer{crew: team, began: began, strict: strict, c: c,
				random: rand.New(rand.NewPCG(seed, uint64(round*len(writers)+i)))}
		}
		if !strict && dies.requests != nil && dies.canDie() {
			spare <- s.client()
		}
		for i, w := range writers {
			team.wg.Go(func() {
				for n := 0; n < length && team.ctx.Err() == nil; n++ {
					w.visit(name)
					team.grants.Add(1) // some visits are tries
					if i == 0 && n == length/2 && len(spare) > 0 {
						w.dies(name, <-spare)
					}
				}
			})
		}
		team.wait()
		var all []porcupine.Operation
		var clients []*client
		for _, w := range writers {
			all = append(all, w.ops...)
			strict = strict && !w.failed
			clients = append(clients, w.c)
		}
		model := leaseLock(strict && !s.cfg.SpuriousTry && !s.cfg.LateLeave)
		if porcupine.CheckOperationsTimeout(model, all, s.cfg.Timeout) == porcupine.Illegal {
			s.broken(fmt.Sprintf("an order of what the clients did explains what they were told (seed %d):\n%s",
				seed, told(all)), append(clients, dies)...)
		}
	}
}

// told lists a history.
func told(ops []porcupine.Operation) (text string) {
	for _, op := range ops {
		end := "later"
		if op.Return < math.MaxInt64 {
			end = time.Duration(op.Return).String()
		}
		text += fmt.Sprintf("  %v to %s: %+v\n", time.Duration(op.Call), end, op.Input)
	}
	return text
}

// take acquires the lock, and returns when it asked.
func (w *writer) take(l locks.TryLocker, owner context.Context) (asked int64, ok bool) {
	asked = w.now()
	if w.strict || w.random.IntN(2) == 0 {
		ok, err := l.TryLockContext(owner)
		if err == nil && !ok {
			w.wrote(refused, asked, w.now(), 0)
		}
		w.failed = w.failed || err != nil
		return asked, ok && err == nil
	}
	// An acquisition that fails may have had the lock for a while. That explains refusals, and
	// nothing else.
	if w.random.IntN(2) == 0 {
		ctx, cancel := context.WithTimeout(owner, time.Duration(w.random.IntN(20))*time.Millisecond)
		defer cancel()
		return asked, l.LockContext(ctx) == nil
	}
	ctx, cancel := w.patient(owner, w.cfg.Timeout)
	defer cancel()
	err := w.c.lockPersistently(ctx, l)
	if err != nil {
		w.breaks(fmt.Sprintf("each waiter gets the lock (%v)", ended(ctx, err)), w.c)
	}
	return asked, err == nil
}

// visit acquires the lock, if it can, and releases it.
func (w *writer) visit(name string) {
	l, owner := w.c.lock(name), locks.WithOwner(w.ctx, locks.NewOwner())
	asked, ok := w.take(l, owner)
	if !ok {
		w.pause(time.Duration(w.random.IntN(3)) * time.Millisecond)
		return
	}
	token := w.token(l, owner)
	w.wrote(acquired, asked, w.now(), token)
	w.pause(time.Duration(w.random.IntN(3)) * time.Millisecond)
	if leased, ok := l.(locks.Leased); ok && w.random.IntN(4) == 0 {
		if h, err := leased.Hold(owner); err == nil {
			call := w.now()
			if h.Extend(owner, time.Minute) == nil {
				w.wrote(extended, call, w.now(), 0)
			}
		}
	}
	call := w.now()
	err := l.UnlockContext(owner)
	switch {
	case err == nil:
		w.wrote(released, call, w.now(), 0)
	case errors.Is(err, locks.ErrLost):
		w.wrote(lapsed, min(call, asked+int64(w.cfg.TTL)), math.MaxInt64, 0)
	default:
		w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), w.c)
	}
}

func (w *writer) token(l locks.TryLocker, owner context.Context) uint64 {
	leased, ok := l.(locks.Leased)
	if !ok {
		return 0
	}
	h, err := leased.Hold(owner)
	if err != nil {
		return 0
	}
	return h.Token()
}

// dies kills the client while it holds the lock, and goes on with another client.
func (w *writer) dies(name string, next *client) {
	l := w.c.lock(name)
	owner := locks.WithOwner(w.ctx, locks.NewOwner())
	ctx, cancel := context.WithTimeout(owner, w.cfg.Timeout)
	defer cancel()
	asked := w.now()
	if err := w.c.lockPersistently(ctx, l); err != nil {
		w.breaks(fmt.Sprintf("each waiter gets the lock (%v)", err), w.c)
	} else {
		w.wrote(acquired, asked, w.now(), w.token(l, owner))
	}
	w.c.die()
	ends := w.now()
	if optional[driver.Session](w.c.requests) == nil { // a session may have begun to end before
		ends = max(ends, asked+int64(w.cfg.TTL))
	}
	w.wrote(lapsed, ends, math.MaxInt64, 0)
	w.c = next
}
