package redislock

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// request has the arguments of a script. Those that differ from call to call are in its own
// fields, and args points to them. So requests of a lock and an unlock allocate nothing.
type request struct {
	args        []any
	acquisition string
	millis      int64
}

var requests = sync.Pool{New: func() any { return &request{args: make([]any, head, 16)} }}

// newRequest returns a request of an acquisition, for the time d.
func newRequest(acquisition string, d time.Duration) *request {
	r := requests.Get().(*request)
	r.args, r.acquisition, r.millis = r.args[:head], acquisition, millis(d)
	return r
}

// recycle keeps r for another request after a call that returned err. Without a reply, a client may
// still read r.
func (r *request) recycle(err error) {
	if err == nil {
		clear(r.args)
		requests.Put(r)
	}
}

// names are the keys and channels of one lock.
type names struct {
	name, key, channel, list, own, token, readersKey string

	times  string      // of a fair lock
	waited atomic.Bool // the last acquisition of a fair lock had to wait
}

// nameCache caches names of locks: for each hash of a name, the names of the lock used last.
type nameCache [64]atomic.Pointer[names]

var seed = maphash.MakeSeed()

// of returns the names of the lock called name. It calls make if they are not cached.
func (c *nameCache) of(name string, make func(name string) *names) *names {
	place := &c[maphash.String(seed, name)%uint64(len(c))]
	n := place.Load()
	if n == nil || n.name != name {
		n = make(name)
		place.Store(n)
	}
	return n
}
