// Package leases lists the leases of this process for people. Each client of package lease
// registers itself. A lease costs nothing until a caller asks for the list.
package leases

import (
	"maps"
	"sync"
	"time"
)

// Lease is one lock of a store, as one client of this process sees it.
type Lease struct {
	Client int    // tells the clients of this process apart. All sets it
	Store  string // the prefix of the client's errors, such as "redislock"
	Name   string
	// Owner has left the local queue: it holds the lock, or asks the store for it. It is 0 if
	// the lock is handed off from one local owner to the next.
	Owner int64
	// Queue identifies the local queue among the locks of this process.
	Queue uintptr

	// Asks is true while the owner asks the store for the lock, or waits for it there. Asked is
	// the time at which that began.
	Asks  bool
	Asked time.Time

	// Held is true if this process has the lock. Lost is true if it had it, and its owner has
	// not unlocked since. The fields below belong to that hold.
	Held, Lost bool
	Cause      string        // why it is lost
	Since      time.Time     // when the request was sent that took it
	Left       time.Duration // until the hold ends here if it is not renewed
	TTL        time.Duration // that a renewal asks for
	Fixed      bool          // not renewed
	Renewed    time.Time     // when the last confirmed renewal was sent; zero if there is none
	Unanswered int           // renewals since then that got no answer
	Token      uint64
}

var sources struct {
	sync.Mutex
	next int
	m    map[int]func() []Lease
}

// Register adds the leases that list returns. The caller calls remove when there are no more.
func Register(list func() []Lease) (remove func()) {
	sources.Lock()
	defer sources.Unlock()
	if sources.m == nil {
		sources.m = make(map[int]func() []Lease)
	}
	sources.next++
	n := sources.next
	sources.m[n] = list
	return func() {
		sources.Lock()
		defer sources.Unlock()
		delete(sources.m, n)
	}
}

// All returns the leases of all clients, in any order.
func All() (all []Lease) {
	sources.Lock()
	lists := maps.Clone(sources.m)
	sources.Unlock()
	for n, list := range lists {
		for _, l := range list() {
			l.Client = n
			all = append(all, l)
		}
	}
	return all
}
