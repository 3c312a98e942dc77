package etcdlock

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Identify is part of [driver.Inspector].
func (s *store) Identify(_, identity string) { s.identity = identity }

// value returns the text that an inspector reads in the key of an acquisition.
func (s *store) value(acquisition string) string { return acquisition + "\n" + s.identity }

// value returns the value of p's key. Other clients of a semaphore read the value too.
func (p *place) value() string {
	usual := p.st.value(p.id.Acquisition)
	if p.st.kind == counting {
		return weight{p.permits, p.size}.line() + usual
	}
	return usual
}

// Inspect reads all keys of the lock, and then the time left of each holder's lease.
func (s *store) Inspect(ctx context.Context, name string) (driver.State, error) {
	resp, err := s.c.client.Get(ctx, name+"/", clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return driver.State{}, storeError(err)
	}
	var state driver.State
	n := 0
	if s.kind == counting {
		resp.Kvs, n, state.Shared, err = holdersFirst(resp.Kvs)
	} else {
		n, state.Shared, err = holders(name, resp.Kvs)
	}
	if err != nil {
		return state, err
	}
	var wg sync.WaitGroup
	state.Holders = make([]driver.Claim, n)
	for i, kv := range resp.Kvs[:n] {
		state.Holders[i] = claim(s.kind, name, kv)
		if i < maxAsked {
			wg.Go(func() { state.Holders[i].Left = s.c.timeLeft(ctx, kv) })
		}
	}
	wg.Wait()
	for _, kv := range resp.Kvs[n:] {
		w := claim(s.kind, name, kv)
		w.Token = 0
		state.Waiters = append(state.Waiters, w)
	}
	state.Waiting = len(state.Waiters)
	return state, ctx.Err()
}

// maxAsked is how many holders are asked for the time left. The others are readers.
const maxAsked = 16

// timeLeft returns the time left of a key's lease, or 0 if it is unknown.
func (c *core) timeLeft(ctx context.Context, kv *mvccpb.KeyValue) time.Duration {
	resp, err := c.client.TimeToLive(ctx, clientv3.LeaseID(kv.Lease))
	if err != nil {
		return 0
	}
	return time.Duration(max(resp.TTL, 0)) * time.Second
}

// holders returns how many of the keys of the lock called name, the oldest first, are of holders.
func holders(name string, kvs []*mvccpb.KeyValue) (n int, shared bool, err error) {
	for i, kv := range kvs {
		reads := strings.HasPrefix(string(kv.Key), name+"/"+reading.own) || isDowngraded(kv.Value)
		switch {
		case kv.Lease == 0:
			return 0, false, foreign(kv.Key)
		case i == 0 && !reads:
			return 1, false, nil
		case !reads:
			return n, true, nil
		}
		n++
	}
	return n, n > 0, nil
}

// claim returns the claim that a key describes. A key of another client, such as etcd's own
// mutex, shows only its lease.
func claim(k *kind, name string, kv *mvccpb.KeyValue) (c driver.Claim) {
	value := strings.TrimPrefix(string(kv.Value), downgraded)
	if k == counting {
		_, value, _ = strings.Cut(value, "\n")
		w, _ := weightOf(kv)
		c.Permits = w.permits
	}
	acquisition, identity, ours := strings.Cut(value, "\n")
	if ours {
		c.Acquisition, c.Identity = acquisition, identity
	} else {
		c.Acquisition = strings.TrimPrefix(string(kv.Key), name+"/")
	}
	c.Token = uint64(kv.CreateRevision)
	return c
}
