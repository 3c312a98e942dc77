package adaptertest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Refuser is the mood of a server that runs in the time of the machine: the error that it answers
// with, unless that is the zero value of E. It counts the requests.
type Refuser[E comparable] struct {
	mu      sync.Mutex
	why     E
	asked   int
	refused int // since the last call of Refuse
}

// Refuse makes the server answer each request with why, or carry requests out if why is zero.
func (r *Refuser[E]) Refuse(why E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.refused = why, 0
}

// Answer counts a request, and returns the error that answers it.
func (r *Refuser[E]) Answer() E {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	var none E
	if r.why != none {
		r.refused++
	}
	return r.why
}

// Refused returns how many requests were answered with the error since the last call of Refuse.
func (r *Refuser[E]) Refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Refuses waits until n requests were answered with the error since the last call of Refuse.
func (r *Refuser[E]) Refuses(tb testing.TB, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return r.Refused() >= n }, hang, time.Millisecond)
}

// Asks waits until there were n more requests, such as requests of a waiter that asks again.
func (r *Refuser[E]) Asks(tb testing.TB, n int) {
	tb.Helper()
	asked := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.asked
	}
	before := asked()
	require.Eventually(tb, func() bool { return asked() >= before+n }, hang, time.Millisecond)
}

// OneOfEach returns the first member of list of each class.
func OneOfEach[M any, C comparable](list []M, class func(M) C) (some []M) {
	seen := make(map[C]bool)
	for _, m := range list {
		if c := class(m); !seen[c] {
			seen[c] = true
			some = append(some, m)
		}
	}
	return some
}
