package consullock

import (
	"context"
	"errors"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var _ driver.BatchReleaser = (*store)(nil)

// ReleaseAll releases the keys by transactions of as many keys as Consul permits. After them, it
// releases the holds whose acquisition was not answered, each by requests of its own.
func (s *store) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	done := make([]bool, len(ids))
	var keys []unlocking
	var unanswered []int
	s.mu.Lock()
	for i, id := range ids {
		if h, known := s.holds[id]; known {
			keys = append(keys, unlocking{i, s.unlock(id.Name, h.index, h.session.id)})
		} else {
			unanswered = append(unanswered, i)
		}
	}
	s.mu.Unlock()
	var failed error
	for _, some := range transactions(keys) {
		if err := s.unlockAll(ctx, some, done); err != nil {
			failed = err
		}
	}
	s.mu.Lock()
	for _, u := range keys {
		if done[u.i] {
			delete(s.holds, ids[u.i])
		}
	}
	s.mu.Unlock()
	for _, i := range unanswered {
		if _, err := s.Release(ctx, ids[i]); err == nil || errors.Is(err, locks.ErrForeign) {
			done[i] = true
		} else {
			failed = err
		}
	}
	return done, failed
}

// unlocking is the release of a hold: its number in the batch, and a condition and a change of its
// key.
type unlocking struct {
	i   int
	ops api.KVTxnOps
}

func (u unlocking) key() string { return u.ops[0].Key }

// transactions divides keys into transactions of as many holds as Consul permits. No transaction
// has a key twice. An operation sees the changes of the operations before it. So the release of a
// key's first hold would make the condition of the second hold fail, and the answer would refuse
// both.
func transactions(keys []unlocking) (all [][]unlocking) {
	for len(keys) > 0 {
		var some, rest []unlocking
		used := make(map[string]bool)
		for _, u := range keys {
			if len(some) < maxOps/2 && !used[u.key()] {
				used[u.key()] = true
				some = append(some, u)
			} else {
				rest = append(rest, u)
			}
		}
		all, keys = append(all, some), rest
	}
	return all
}

// unlockAll carries out some by one transaction, and sets done of each hold that has ended. If a
// transaction is refused, none of its operations is carried out, and the answer names each
// operation that has failed. Then unlockAll repeats the transaction without the holds of these
// operations.
func (s *store) unlockAll(ctx context.Context, some []unlocking, done []bool) (failed error) {
	for len(some) > 0 {
		var ops api.KVTxnOps
		for _, u := range some {
			ops = append(ops, u.ops...)
		}
		_, refused, err := s.transact(ctx, ops...)
		if err != nil {
			return err
		}
		refusals := make(map[int]api.TxnErrors) // by hold
		for _, e := range refused {
			if k := e.OpIndex / 2; k >= 0 && k < len(some) {
				refusals[k] = append(refusals[k], e)
			}
		}
		if len(refused) > 0 && len(refusals) == 0 {
			return errors.New("a refusal of no operation")
		}
		var rest []unlocking
		for k, u := range some {
			why, is := refusals[k]
			switch {
			case is:
				_, err := refusalOf(why)
				if done[u.i] = err == nil; err != nil {
					failed = err
				}
			case len(refused) > 0:
				rest = append(rest, u)
			default:
				done[u.i] = true
			}
		}
		some = rest
	}
	return failed
}
