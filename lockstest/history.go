package lockstest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// clients is the number of goroutines that write a random history.
const clients = 4

type action uint8

const (
	doLock action = iota
	doTry
	doUnlock
)

// input is a call of a client.
type input struct {
	action action
	read   bool
	client int
}

// output is the result of a call.
type output uint8

const (
	succeeded output = iota
	refused          // false, or ErrNotHeld
	timedOut
)

// holds is the state of the model: the holds of each client. Holds without owners all count as the
// first client's.
type holds struct{ reads, writes [clients]int }

// model is the sequential specification of a lock with cfg's promises.
func model(cfg Config) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return holds{} },
		Step: func(state, in, out any) (bool, any) {
			return step(cfg, state.(holds), in.(input), out.(output))
		},
	}
}

func step(cfg Config, h holds, in input, out output) (bool, holds) {
	me := in.client
	if !cfg.Owned {
		me = 0
	}
	mine := &h.writes[me]
	if in.read {
		mine = &h.reads[me]
	}
	if in.action == doUnlock {
		if out == succeeded {
			*mine--
			return *mine >= 0, h
		}
		return *mine == 0, h
	}
	free := *mine == 0 || cfg.Reentrant || in.read && !cfg.Owned
	for i := range clients {
		if h.writes[i] > 0 && (i != me || in.read) || !in.read && h.reads[i] > 0 {
			free = false
		}
	}
	switch out {
	case succeeded:
		*mine++
		return free, h
	case refused:
		// A try of a read-write lock may respect the waiters.
		return !free || cfg.SpuriousTry || cfg.shared(), h
	}
	return true, h
}

func linearizable(s *suite) {
	const length = 24
	histories := max(1, s.cfg.Rounds/40)
	for range histories {
		var (
			clock   atomic.Int64
			written [clients][]porcupine.Operation
			seed    = rand.Uint64()
		)
		s.together(clients, func(client int) error {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			ctx := s.ctx
			var held [2]int // by view, so that a client does not upgrade and gives all back
			for i := 0; i < length || held != [2]int{}; i++ {
				in := s.choose(random, held, i >= length)
				in.client = client
				l, view := s.x, 0
				if in.read {
					l, view = s.l, 1
				}
				wait, cancel := context.WithTimeout(ctx, time.Duration(1+random.IntN(10))*s.cfg.Settle/10)
				op := porcupine.Operation{ClientId: client, Input: in, Call: clock.Add(1)}
				out, err := in.call(l, wait, ctx)
				op.Return, op.Output = clock.Add(1), out
				cancel()
				if err != nil {
					return err
				}
				written[client] = append(written[client], op)
				if random.IntN(2) == 0 { // else a client is done before the next client begins
					runtime.Gosched()
				}
				switch {
				case out != succeeded:
					if i > 10*length {
						return errors.New("a client cannot give its holds back")
					}
				case in.action == doUnlock:
					held[view]--
				default:
					held[view]++
				}
			}
			return nil
		})
		var history []porcupine.Operation
		for _, w := range written {
			history = append(history, w...)
		}
		result := porcupine.CheckOperationsTimeout(model(s.cfg), history, s.cfg.Timeout)
		require.NotEqual(s, porcupine.Illegal, result,
			"no order of these calls explains what they returned: %+v", history)
	}
	s.mustBeFree("every client has released it")
}

// choose returns the next call of a client that has the holds held, by view. With finish it is a
// release if the client has a hold.
func (s *suite) choose(random *rand.Rand, held [2]int, finish bool) input {
	in := input{action: action(random.IntN(3))}
	in.read = s.cfg.shared() && random.IntN(2) == 0
	view := 0
	if in.read {
		view = 1
	}
	if finish || held[1-view] > 0 && in.action != doUnlock {
		in.action = doUnlock
		if held[view] == 0 && held[1-view] > 0 {
			view, in.read = 1-view, !in.read
		}
	}
	// Any client can release a hold without an owner. Such a release would end the hold of a
	// client that relies on it.
	if !s.cfg.Owned && in.action == doUnlock && held[view] == 0 {
		in.action = doTry
	}
	return in
}

func (in input) call(l locks.TryLocker, wait, forever context.Context) (output, error) {
	switch in.action {
	case doTry:
		ok, err := l.TryLockContext(forever)
		if err == nil && !ok {
			return refused, nil
		}
		return succeeded, err
	case doUnlock:
		err := l.UnlockContext(forever)
		if errors.Is(err, locks.ErrNotHeld) {
			return refused, nil
		}
		return succeeded, err
	}
	err := l.LockContext(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut, nil
	}
	if errors.Is(err, locks.ErrDeadlock) {
		return refused, nil
	}
	return succeeded, err
}
