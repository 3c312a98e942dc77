package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var _ driver.Breaker = (*store)(nil)

// Break deletes the key of the present holder. If the lock changes hands meanwhile, it looks
// again. A read-write lock and a semaphore have several holders. One request cannot tell them
// from later holders.
func (s *store) Break(ctx context.Context, name string) (bool, error) {
	switch {
	case name == "": // every key that begins with a slash is below it
		return false, errNoName
	case s.kind != plain:
		return false, fmt.Errorf("a lock of several holders: %w", errors.ErrUnsupported)
	}
	for {
		resp, err := s.c.client.Get(ctx, s.kind.older(name), clientv3.WithFirstCreate()...)
		if err != nil {
			return false, storeError(err)
		}
		if len(resp.Kvs) == 0 {
			return false, nil
		}
		holder := resp.Kvs[0]
		if holder.Lease == 0 {
			return false, foreign(holder.Key)
		}
		key := string(holder.Key)
		txn, err := s.c.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", holder.CreateRevision)).
			Then(clientv3.OpDelete(key)).
			Commit()
		if err != nil {
			return false, storeError(err)
		}
		if txn.Succeeded {
			return true, nil
		}
	}
}

// pageOfKeys is how many keys one request reads.
const pageOfKeys = 1000

var unescaper = strings.NewReplacer("%25", "%", "%2F", "/")

// Names returns the names of the locks that match pattern and are held or waited for, sorted.
// The pattern has the syntax of [path.Match], and the empty pattern matches all names. Names
// includes locks of etcd's own mutex below the Client's prefix, and of [Client.RWMutex], but no
// semaphores. Every key with a lease in the form of a lock's key counts, so a prefix without other
// keys is best. Names reads the keys by pages until ctx ends.
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	return adapter.Names(ctx, "etcdlock: list names", pattern, func(add func(name string)) error {
		from, end := c.prefix, clientv3.GetPrefixRangeEnd(c.prefix)
		if from == "" {
			from, end = "\x00", "\x00" // all keys
		}
		for {
			resp, err := c.core.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(),
				clientv3.WithLimit(pageOfKeys))
			if err != nil {
				return err
			}
			for _, kv := range resp.Kvs {
				if name, ok := nameOf(strings.TrimPrefix(string(kv.Key), c.prefix)); ok && kv.Lease != 0 {
					add(name)
				}
			}
			if !resp.More || len(resp.Kvs) == 0 {
				return nil
			}
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		}
	})
}

// nameOf returns the name of the lock that a key belongs to. The key is given without the
// Client's prefix. nameOf reports false for a key that belongs to no lock.
func nameOf(key string) (name string, ok bool) {
	i := strings.LastIndexByte(key, '/')
	id, number, _ := strings.Cut(key[i+1:], "-")
	if i < 0 || id == "" || strings.Trim(id+number, "0123456789abcdef") != "" {
		return "", false
	}
	lock := strings.TrimSuffix(strings.TrimSuffix(key[:i], "%rw/read"), "%rw/write")
	name = unescaper.Replace(lock)
	return name, name != "" && escaper.Replace(name) == lock
}
