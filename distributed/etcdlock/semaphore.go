package etcdlock

import (
	"fmt"
	"math"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a semaphore: one key for each acquisition that holds or waits, <semaphore>/<lease>.
// Its value begins with how many permits the acquisition asks for, and of how many. The value of a
// key never changes.
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
// Never more than the size is held. No key can come to be older than one that is there. So the sum
// up to a key never grows, and an acquisition that holds by the rule goes on to do so. Let k be the
// newest of the holders at any time. All holders are among the keys up to k, whether k's client
// knew them as holders or as waiters. So all permits held are at most the sum up to k, which is at
// most the size.
//
// Acquire relies on the rule too. It reads all keys at one revision, and puts its own if no key was
// created later. A key may have gone meanwhile, which makes the sum smaller. A try that is refused
// has put no key, so it stands in the way of no other try.
//
// The order is that of arrival. If an acquisition holds, so does each older one, since its sum is
// smaller. A waiter for many permits thus keeps back all that come later, small ones too.
//
// If clients give different sizes, an acquisition of a greater size may hold before an older one of
// a smaller size. The argument above is about the size of the newest holder. So never more than
// the greatest size is held. An acquisition counts no newer keys.
//
// No wake-up is lost. The sum up to a key changes only if an older key is deleted. Which deletion
// makes room depends on how many permits each one has. So a waiter watches the deletions of all
// keys of the semaphore, and reads again after each. What was deleted before the watch began is
// read once it has begun, see again. A release wakes one goroutine of each waiting process for
// that.

// counting is the kind of semaphores.
var counting = &kind{}

// Semaphore returns the semaphore called name, of size permits. It is independent of the locks of
// the same name.
//
// Each acquisition has one key of the client's session, <[Client.Prefix] of the name>%sem/<lease>,
// for all its permits. Processes get their permits in order of arrival, and one that waits for many
// keeps back all later ones until it has them. In a process, the goroutines that share a Semaphore
// ask one after the other. The create revision of the key is the token. If processes give different
// sizes, at most the greatest is held.
//
// An acquisition that need not wait is one request. A try is one more if others hold permits. A
// release is one. It wakes one goroutine of each waiting process, which sends a request. The
// permits of a process that died return at the end of its session, see [WithTTL].
func (c *Client) Semaphore(name string, size int64) *lease.Semaphore {
	lc, prefix, bad := c.locksOf(counting, name, c.semaphore(name))
	return lc.Semaphore(prefix, size, bad)
}

// semaphore returns what the keys of a semaphore begin with. No lock's name has it.
func (c *Client) semaphore(name string) string { return c.Prefix(name) + "%sem" }

// weight is how many permits an acquisition asks for, of how many.
type weight struct{ permits, size int64 }

// line is the first line of a key's value.
func (w weight) line() string { return fmt.Sprintf("%d/%d\n", w.permits, w.size) }

// weightOf returns what a key of a semaphore says.
func weightOf(kv *mvccpb.KeyValue) (w weight, err error) {
	line, _, _ := strings.Cut(string(kv.Value), "\n")
	if _, err := fmt.Sscanf(line, "%d/%d", &w.permits, &w.size); err != nil || w.permits < 1 {
		return w, fmt.Errorf("the key %q is no acquisition of permits: %w", kv.Key, locks.ErrForeign)
	}
	return w, nil
}

// hasRoom reports whether p's permits are free beside those of the oldest keys, up to p's own if
// that is there. A lock is of one permit.
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
