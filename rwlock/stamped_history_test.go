package rwlock_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/rwlock"
)

// stampedCall is an operation in a history, with its stamp, and with the stamp or answer that it
// returned.
type stampedCall struct {
	op     string
	st     rwlock.Stamp
	result rwlock.Stamp
	ok     bool
}

type stampedState struct {
	version uint64
	writing bool
	readers int
}

// stampedLinear is a StampedLock whose operations take effect one after the other. Every answer is
// exact but the answer of a limited wait.
var stampedLinear = porcupine.Model{
	Init: func() any { return stampedState{} },
	Step: func(state, _, output any) (bool, any) {
		s, c := state.(stampedState), output.(stampedCall)
		valid := c.st != 0 && rwlock.StampedVersion(c.st) == s.version && c.st.IsWriteLock() == s.writing
		held := valid && (c.st.IsWriteLock() || c.st.IsReadLock() && s.readers > 0)
		free := !s.writing && s.readers == 0
		var ok bool // whether the operation can succeed
		leave := func() {
			switch {
			case c.st.IsWriteLock():
				s.writing = false
				s.version++
			case c.st.IsReadLock():
				s.readers--
			}
		}
		switch c.op {
		case "write":
			ok = free
			s.writing = true
		case "read":
			ok = !s.writing
			s.readers++
		case "optimistic":
			ok = !s.writing
		case "validate":
			return c.ok == valid, s
		case "unlock":
			ok = held
			leave()
			return ok && c.ok, s
		case "toWrite":
			ok = valid && (c.st.IsWriteLock() ||
				c.st.IsReadLock() && s.readers == 1 || c.st.IsOptimisticRead() && s.readers == 0)
			s.writing, s.readers = true, 0
		case "toRead":
			ok = held || valid && c.st.IsOptimisticRead()
			if !c.st.IsReadLock() {
				leave()
				s.readers++
			}
		case "toOptimistic":
			ok = held || valid && c.st.IsOptimisticRead()
			leave()
		case "timeout":
			return true, s
		}
		if !ok {
			return c.result == 0, state
		}
		return c.result != 0 && rwlock.StampedVersion(c.result) == s.version, s
	},
	Equal: func(a, b any) bool { return a == b },
}

func TestConcurrentHistoriesOfAStampedAreLinearizable(t *testing.T) {
	const clients, length, histories = 5, 24, 150
	for h := range histories {
		var (
			l       rwlock.StampedLock
			clock   atomic.Int64
			wg      sync.WaitGroup
			written [clients][]porcupine.Operation
		)
		for client := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(h), uint64(client)))
				record := func(c stampedCall, f func(*stampedCall)) stampedCall {
					op := porcupine.Operation{ClientId: client, Call: clock.Add(1)}
					f(&c)
					op.Return, op.Output = clock.Add(1), c
					written[client] = append(written[client], op)
					return c
				}
				var st rwlock.Stamp // what this client has, a hold or an optimistic stamp
				unlock := func(c *stampedCall) { l.Unlock(c.st); c.ok = true }
				for range length {
					if h%2 == 1 && random.IntN(3) == 0 {
						rwlock.OpenStampedTable(&l)
					}
					limit := time.Duration(random.IntN(50)) * time.Microsecond
					take := func(op string, f func() rwlock.Stamp) rwlock.Stamp {
						return record(stampedCall{op: op}, func(c *stampedCall) {
							if c.result = f(); c.result == 0 && op != "optimistic" && limit > 0 {
								c.op = "timeout"
							}
						}).result
					}
					convert := func(op string, f func(rwlock.Stamp) rwlock.Stamp) {
						c := record(stampedCall{op: op, st: st}, func(c *stampedCall) { c.result = f(c.st) })
						if c.result != 0 || st.IsOptimisticRead() {
							st = c.result
						}
					}
					switch n := random.IntN(8); {
					case st == 0 && n == 0:
						limit = 0
						st = take("write", l.TryWriteLock)
					case st == 0 && n == 1:
						limit = 0
						st = take("read", l.TryReadLock)
					case st == 0 && n < 4:
						limit++
						st = take("write", func() rwlock.Stamp { return l.TryWriteLockFor(limit) })
					case st == 0 && n < 6:
						limit++
						st = take("read", func() rwlock.Stamp { return l.TryReadLockFor(limit) })
					case st == 0:
						st = take("optimistic", l.TryOptimisticRead)
					case n == 0:
						convert("toWrite", l.TryConvertToWriteLock)
					case n == 1:
						convert("toRead", l.TryConvertToReadLock)
					case n == 2:
						convert("toOptimistic", l.TryConvertToOptimisticRead)
					case n == 3:
						record(stampedCall{op: "validate", st: st}, func(c *stampedCall) { c.ok = l.Validate(c.st) })
					case st.IsLock():
						record(stampedCall{op: "unlock", st: st}, unlock)
						st = 0
					default:
						record(stampedCall{op: "validate", st: st}, func(c *stampedCall) { c.ok = l.Validate(c.st) })
						st = 0
					}
					if random.IntN(2) == 0 {
						runtime.Gosched()
					}
				}
				if st.IsLock() {
					record(stampedCall{op: "unlock", st: st}, unlock)
				}
			})
		}
		wg.Wait()
		var history []porcupine.Operation
		for _, ops := range written {
			history = append(history, ops...)
		}
		verdict := porcupine.CheckOperationsTimeout(stampedLinear, history, time.Minute)
		require.NotEqual(t, porcupine.Illegal, verdict, "history %d", h)
		stampedFree(t, &l)
	}
}
