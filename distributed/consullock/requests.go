package consullock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// try is how long a request may take that does not wait for anything.
func (s *store) try() time.Duration { return min(s.ttl/3, 5*time.Second) }

// write sends a request that changes something.
func (s *store) write(ctx context.Context, endpoint string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, s.try())
	defer cancel()
	_, err := s.client.Raw().Write(endpoint, in, out, (&api.WriteOptions{}).WithContext(ctx))
	return storeError(err)
}

// change carries out all of ops, and returns the pair that the last operation has left. Or it
// carries out none of them, and refusal says why.
func (s *store) change(ctx context.Context, ops ...*api.KVTxnOp) (pair *api.KVPair, refusal, err error) {
	results, refused, err := s.transact(ctx, ops...)
	if err != nil {
		return nil, nil, err
	}
	if refusal, err = refusalOf(refused); refusal != nil || err != nil {
		return nil, refusal, err
	}
	return results[len(ops)-1].KV, nil, nil
}

// transact carries out all of ops. Or it carries out none of them, and refused says which of them
// have failed.
//
// transact does not use the Txn of Consul's client, whose errors lack the status.
func (s *store) transact(
	ctx context.Context, ops ...*api.KVTxnOp) (results api.TxnResults, refused api.TxnErrors, err error) {
	var in api.TxnOps
	for _, op := range ops {
		in = append(in, &api.TxnOp{KV: op})
	}
	var out api.TxnResponse
	err = s.write(ctx, "/v1/txn", in, &out)
	var answer api.StatusError
	if errors.As(err, &answer) && answer.Code == http.StatusConflict {
		if err = json.Unmarshal([]byte(answer.Body), &out); err == nil && len(out.Errors) == 0 {
			err = errors.New("a conflict without a reason")
		}
		return nil, out.Errors, err
	}
	if err != nil {
		return nil, nil, err
	}
	if n := len(out.Results); n != len(ops) || out.Results[n-1].KV == nil {
		return nil, nil, fmt.Errorf("%d results of %d operations, or without a pair", n, len(ops))
	}
	return out.Results, nil, nil
}

// Why a change is refused.
var (
	errConflict = errors.New("the key has changed")
	errSession  = errors.New("the session is over")
	errDelay    = errors.New("the lock delay of the key is not over")
)

// conflicts are the beginnings of messages that say that a key is not as a change expects.
var conflicts = []string{
	"failed index check for key ", "failed to check index, key ", "failed to set key ", "failed to lock key ",
	"failed to unlock key ",
}

// refusalOf returns the refusal in the answers to the operations of a change. Anything but these
// three refusals is an error.
//
// Messages quote the key, also the message about a missing right. So only their beginning and end
// count.
func refusalOf(ops api.TxnErrors) (refusal, err error) {
	for _, op := range ops {
		what := op.What
		begins := func(text string) bool { return strings.HasPrefix(what, text) }
		switch {
		case begins("invalid session "):
			return errSession, nil
		case begins("failed to lock key ") && strings.HasSuffix(what, " due to lock delay"):
			return errDelay, nil
		case slices.ContainsFunc(conflicts, begins):
			refusal = errConflict
		default:
			return nil, driver.Mark(errors.New(what), driver.ErrRefused)
		}
	}
	return refusal, nil
}

// read returns the pair of the lock called name, or nil, and the metadata that a query needs to
// wait for the next change. With consistent, the leader makes sure that it is still the leader.
func (s *store) read(ctx context.Context, name string, consistent bool) (*api.KVPair, *api.QueryMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, s.try())
	defer cancel()
	q := (&api.QueryOptions{RequireConsistent: consistent}).WithContext(ctx)
	pair, meta, err := s.client.KV().Get(s.key(name), q)
	return pair, meta, undone(storeError(err))
}

// list returns all pairs below the prefix.
func (s *store) list(ctx context.Context) (api.KVPairs, error) {
	pairs, _, err := s.client.KV().List(s.prefix, (&api.QueryOptions{}).WithContext(ctx))
	return pairs, undone(storeError(err))
}

// await waits until the data of a query has another index, and sets index to the new index. Without
// a change, await returns after about a TTL, so that a lost answer delays a waiter for no longer
// than that. After an error, await pauses.
func (s *store) await(
	life context.Context, index *uint64, query func(*api.QueryOptions) (*api.QueryMeta, error)) error {
	ctx, cancel := context.WithTimeout(life, s.ttl+s.ttl/16+s.try()) // the server adds up to a sixteenth
	defer cancel()
	q := &api.QueryOptions{WaitIndex: *index, WaitTime: s.ttl, RequireConsistent: true}
	meta, err := query(q.WithContext(ctx))
	switch {
	case err != nil:
		adapter.Sleep(life, adapter.Jitter(min(s.try(), time.Second)))
	default: // the index may be lower than before, such as after a restore
		*index = max(meta.LastIndex, 1) // a query with 0 does not wait
	}
	return err
}

// storeError returns err as an error of a [driver.Store].
func storeError(err error) error {
	var answer api.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return classOf(answer).Mark(err)
	}
	return classes.NoAnswer(err, false)
}

// undone marks err as the error of a request that failed before it could change anything.
func undone(err error) error {
	if err == nil || errors.Is(err, driver.ErrRefused) {
		return err
	}
	return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
}
