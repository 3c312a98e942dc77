package rwlock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/rwlock"
)

// pair has the variables that the lock guards in the stress tests. They are plain, so that the race
// detector watches.
type pair struct{ a, b int }

func (p *pair) write(t *testing.T) {
	p.a++
	if rand.IntN(8) == 0 {
		runtime.Gosched()
	}
	p.b++
	p.read(t)
}

func (p *pair) read(t *testing.T) {
	if a := p.a; a != p.b {
		t.Error("somebody writes who has not the lock alone")
	}
}

func TestAllUsesKeepExclusionAndLoseNoWaiter(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			const rounds = 250
			var (
				wg      sync.WaitGroup
				p       pair
				written atomic.Int64
			)
			write := func() { p.write(t); written.Add(1) }
			c := rw.NewCond()
			for g := range 24 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 3))
					ctx := t.Context()
					if g%3 == 0 {
						ctx = locks.WithOwner(ctx, locks.NewOwner())
					}
					for range rounds {
						short := time.Duration(r.IntN(60)) * time.Microsecond
						sctx, cancel := context.WithTimeout(ctx, short)
						op := r.IntN(12)
						if g%3 == 0 && op < 6 {
							op += 6 // the plain forms are not for explicit owners
						}
						switch op {
						case 0:
							rw.Lock()
							write()
							rw.RLock()
							rw.Unlock()
							p.read(t)
							rw.RUnlock()
						case 1:
							if rw.TryLock() {
								write()
								rw.Unlock()
							}
						case 2:
							if rw.TryLockFor(short) {
								write()
								rw.Downgrade()
								p.read(t)
								rw.RUnlock()
							}
						case 3:
							if rw.TryRLockFor(short) {
								p.read(t)
								rw.RUnlock()
							}
						case 4:
							if rw.TryRLock() {
								before := p.a
								if rw.TryUpgrade() {
									assert.Equal(t, before, p.a)
									write()
									rw.Unlock()
								} else {
									rw.RUnlock()
								}
							}
						case 5:
							rw.Lock()
							write()
							c.WaitFor(short)
							write()
							c.Signal()
							rw.Unlock()
						case 6:
							if rw.LockContext(sctx) == nil {
								write()
								_ = c.WaitContext(sctx)
								write()
								assert.NoError(t, rw.UnlockContext(ctx))
							}
						case 7:
							if rw.RLockContext(sctx) == nil {
								p.read(t)
								assert.NoError(t, rw.RUnlockContext(ctx))
							}
						case 8:
							assert.NoError(t, rw.RLockContext(ctx))
							if ok, _ := rw.TryUpgradeContext(ctx); ok {
								write()
								assert.NoError(t, rw.DowngradeContext(ctx))
							}
							p.read(t)
							assert.NoError(t, rw.RUnlockContext(ctx))
						case 9:
							if ok, _ := rw.TryLockContext(ctx); ok {
								write()
								assert.NoError(t, c.BroadcastContext(ctx))
								assert.NoError(t, rw.UnlockContext(ctx))
							}
						default:
							assert.NoError(t, rw.RLockContext(ctx))
							assert.NoError(t, rw.RLockContext(ctx))
							p.read(t)
							runtime.Gosched()
							assert.NoError(t, rw.RUnlockContext(ctx))
							p.read(t)
							assert.NoError(t, rw.RUnlockContext(ctx))
						}
						cancel()
					}
				})
			}
			within(t, &wg, rw)
			require.EqualValues(t, written.Load(), p.a)
			isFree(t, rw)
		})
	})
}

// Linearizability.

const rwClients = 4

type rwAction uint8

const (
	doRLock rwAction = iota
	doTryRLock
	doLock
	doTryLock
	doRUnlock
	doUnlock
	doDowngrade
	doTryUpgrade
	rwActions
)

type rwCall struct {
	action rwAction
	client int
}

// rwHolds is the state of the sequential lock: how many holds each client has.
type rwHolds struct{ reads, writes [rwClients]int }

func (h rwHolds) step(c rwCall, ok bool) (bool, rwHolds) {
	read, write := &h.reads[c.client], &h.writes[c.client]
	othersWrite, othersRead := false, false
	for i := range rwClients {
		if i != c.client {
			othersWrite = othersWrite || h.writes[i] > 0
			othersRead = othersRead || h.reads[i] > 0
		}
	}
	possible := false
	before := h
	switch c.action {
	case doRLock, doTryRLock:
		possible = !othersWrite
		*read++
	case doLock, doTryLock:
		possible = *write > 0 || !othersWrite && !othersRead && *read == 0
		*write++
	case doRUnlock:
		possible = *read > 0
		*read--
	case doUnlock:
		possible = *write > 0
		*write--
	case doDowngrade:
		possible = *write > 0
		*write--
		*read++
	case doTryUpgrade:
		possible = *read > 0 && !othersRead
		*read--
		*write++
	}
	if ok {
		return possible, h
	}
	// A wait is limited here, and may end in vain at any time.
	return !possible || c.action == doRLock || c.action == doLock, before
}

var rwSequential = porcupine.Model{
	Init: func() any { return rwHolds{} },
	Step: func(st, in, out any) (bool, any) { return st.(rwHolds).step(in.(rwCall), out.(bool)) },
}

func TestAllChangesOfHoldsAreLinearizable(t *testing.T) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			for range 25 {
				rw := rwlock.New(p)
				var clock atomic.Int64
				var written [rwClients][]porcupine.Operation
				var wg sync.WaitGroup
				for client := range rwClients {
					wg.Go(func() {
						ctx := t.Context()
						if client%2 == 0 {
							ctx = locks.WithOwner(ctx, locks.NewOwner())
						}
						do := func(a rwAction) (ok bool) {
							wait, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
							defer cancel()
							op := porcupine.Operation{ClientId: client, Input: rwCall{a, client}, Call: clock.Add(1)}
							switch a {
							case doRLock:
								ok = rw.RLockContext(wait) == nil
							case doTryRLock:
								ok, _ = rw.TryRLockContext(ctx)
							case doLock:
								ok = rw.LockContext(wait) == nil
							case doTryLock:
								ok, _ = rw.TryLockContext(ctx)
							case doRUnlock:
								ok = rw.RUnlockContext(ctx) == nil
							case doUnlock:
								ok = rw.UnlockContext(ctx) == nil
							case doDowngrade:
								ok = rw.DowngradeContext(ctx) == nil
							case doTryUpgrade:
								ok, _ = rw.TryUpgradeContext(ctx)
							}
							op.Return, op.Output = clock.Add(1), ok
							written[client] = append(written[client], op)
							if rand.IntN(2) == 0 {
								runtime.Gosched()
							}
							return ok
						}
						for range 30 {
							do(rwAction(rand.IntN(int(rwActions))))
						}
						for do(doUnlock) {
						}
						for do(doRUnlock) {
						}
					})
				}
				within(t, &wg, rw)
				isFree(t, rw)
				var history []porcupine.Operation
				for _, w := range written {
					history = append(history, w...)
				}
				verdict := porcupine.CheckOperationsTimeout(rwSequential, history, time.Minute)
				require.NotEqual(t, porcupine.Illegal, verdict, "%+v", history)
			}
		})
	}
}
