package etcdlock

import (
	"fmt"
	"math"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a semaphore: one key for each acquisition that holds or waits,
// <semaphore>/<lease>. Its value begins with the number of permits that the acquisition asks for,
// and the size of the semaphore. The value of a key never changes.
//
//	Acquire       if no key, put mine; else read all
//	              if there is room and no new key since, put mine; again if there is a new key
//	Enqueue       put mine, if absent; read all up to mine
//	Enqueue again read mine, and all up to it
//	Release       delete mine
//
// The rule: an acquisition holds if the permits of all older keys and its own are at most the size.
// Keys are ordered by their create revisions, so all clients see one order.
//
// The permits held never exceed the size. A new key is never older than an existing key. So the
// sum up to a key never grows, and an acquisition that holds by the rule goes on to hold. Let k
// be the newest of the holders at any time. All holders are among the keys up to k, whether k's
// client knew them as holders or as waiters. So all permits held are at most the sum up to k,
// which is at most the size.
//
// Acquire relies on the rule too. It reads all keys at one revision, and puts its own if no key
// was created later. A key may have gone meanwhile, which makes the sum smaller. A try that is
// refused has put no key, so it does not block other tries.
//
// Acquisitions are served in order of arrival. If an acquisition holds, each older acquisition
// holds too, since its sum is smaller. A waiter for many permits thus keeps back all later
// acquisitions, also those for few permits.
//
// If clients give different sizes, an acquisition of a greater size may hold before an older
// acquisition of a smaller size. The argument above uses the size of the newest holder. So the
// permits held never exceed the greatest size. An acquisition counts no newer keys.
//
// No wake-up is lost. The sum up to a key changes only if an older key is deleted. Which deletion
// makes room depends on the permits of each key. So a waiter watches the deletions of all keys of
// the semaphore, and reads again after each. The first read after the beginning of the watch
// finds earlier deletions, see again. A release therefore wakes one goroutine of each waiting
// process.

// counting is the kind of semaphores.
var counting = &kind{}

// Semaphore returns the semaphore called name, of size permits. The semaphore is independent of
// the locks of the same name.
//
// Each acquisition has one key of the client's session, <[Client.Prefix] of the
// name>%sem/<lease>, for all its permits. Processes get their permits in order of arrival. A
// process that waits for many permits keeps back all later processes until it has them. In a
// process, the goroutines that share a Semaphore ask one after the other. The create revision of
// the key is the token. If processes give different sizes, at most the greatest is held.
//
// An acquisition that need not wait takes one request, or two for a try if others hold permits. A
// release takes one request. The release wakes one goroutine of each waiting process, which sends
// a request. The permits of a process that died return at the end of its session, see [WithTTL].
func (c *Client) Semaphore(name string, size int64) *lease.Semaphore {
	lc, prefix, bad := c.locksOf(counting, name, c.semaphore(name))
	return lc.Semaphore(prefix, size, bad)
}

// semaphore returns the prefix of the keys of a semaphore. The prefix occurs in no lock's name.
func (c *Client) semaphore(name string) string { return c.Prefix(name) + "%sem" }

// weight is the number of permits that an acquisition asks for, and the size of the semaphore.
type weight struct{ permits, size int64 }

// line is the first line of a key's value.
func (w weight) line() string { return fmt.Sprintf("%d/%d\n", w.permits, w.size) }

// weightOf returns the weight in the value of a semaphore's key.
func weightOf(kv *mvccpb.KeyValue) (w weight, err error) {
	line, _, _ := strings.Cut(string(kv.Value), "\n")
	if _, err := fmt.Sscanf(line, "%d/%d", &w.permits, &w.size); err != nil || w.permits < 1 {
		return w, fmt.Errorf("the key %q is no acquisition of permits: %w", kv.Key, locks.ErrForeign)
	}
	return w, nil
}

// hasRoom reports whether the keys in oldest, up to p's own key if it is there, leave enough
// permits for p. A lock has one permit.
func (p *place) hasRoom(oldest []*mvccpb.KeyValue) (bool, error) {
	left := p.size - p.permits
	for _, kv := range oldest {
		if string(kv.Key) == p.key {
			return true, nil
		}
		w := weight{1, 1}
		var err error
		if kv.Lease == 0 {
			return false, foreign(kv.Key)
		} else if p.st.kind == counting {
			w, err = weightOf(kv)
		}
		if left -= w.permits; left < 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// holdersFirst sorts the keys of a semaphore, the oldest first, so that the n holders come first.
// shared says that there is more than one permit.
func holdersFirst(kvs []*mvccpb.KeyValue) (sorted []*mvccpb.KeyValue, n int, shared bool, err error) {
	var holders, waiters []*mvccpb.KeyValue
	sum := int64(0)
	for _, kv := range kvs {
		w, err := weightOf(kv)
		switch {
		case kv.Lease == 0:
			return nil, 0, false, foreign(kv.Key)
		case err != nil:
			return nil, 0, false, err
		}
		if sum <= w.size-w.permits {
			holders = append(holders, kv)
			shared = shared || w.size > 1
		} else {
			waiters = append(waiters, kv)
		}
		if sum += w.permits; sum < 0 {
			sum = math.MaxInt64
		}
	}
	return append(holders, waiters...), len(holders), shared, nil
}
