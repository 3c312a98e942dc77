package redislock

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// request is room for the arguments of a script, those that differ from call to call included:
// the arguments point to these. So a lock and an unlock need no memory for that.
type request struct {
	args   []any
	owner  string
	millis int64
}

var requests = sync.Pool{New: func() any { return &request{args: make([]any, head, 16)} }}

// newRequest returns a request of owner, for the time d.
func newRequest(owner string, d time.Duration) *request {
	r := requests.Get().(*request)
	r.args, r.owner, r.millis = r.args[:head], owner, millis(d)
	return r
}

// done has r used again, after a call that returned err. Where there was no reply, a client may
// read it still.
func (r *request) done(err error) {
	if err == nil {
		clear(r.args)
		requests.Put(r)
	}
}

// names are what belongs to one lock.
type names struct{ name, channel, list, token, beside string }

// nameCache has the names of the locks that were in use last, more or less: for each hash of a
// name, of the last one.
type nameCache [64]atomic.Pointer[names]

var seed = maphash.MakeSeed()

// of returns the names of the lock called name, by make if they are not there.
func (c *nameCache) of(name string, make func(name string) *names) *names {
	place := &c[maphash.String(seed, name)%uint64(len(c))]
	n := place.Load()
	if n == nil || n.name != name {
		n = make(name)
		place.Store(n)
	}
	return n
}
