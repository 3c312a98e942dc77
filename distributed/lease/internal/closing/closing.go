// Package closing has the state that the clients of a group share while the group closes them. The
// context of its Close tells a client that several clients close together.
package closing

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Together is the end of several clients, in two steps. First the holders of all clients learn of
// their losses. Then the store gets its locks back.
type Together struct {
	begun sync.WaitGroup // the clients that have not done the first step

	mu   sync.Mutex
	left Unreleased
}

// New returns the end of n clients.
func New(n int) *Together {
	t := new(Together)
	t.begun.Add(n)
	return t
}

// Member is the part of one client in the end.
type Member struct {
	*Together
	first sync.Once // the first step
}

type key struct{}

// Member returns the part of the next client, and the context for its Close.
func (t *Together) Member(ctx context.Context) (*Member, context.Context) {
	m := &Member{Together: t}
	return m, context.WithValue(ctx, key{}, m)
}

// Of returns the part of a client whose Close has ctx. For a client that is closed alone, Of makes
// an end of its own.
func Of(ctx context.Context) *Member {
	if m, ok := ctx.Value(key{}).(*Member); ok {
		return m
	}
	return &Member{Together: New(1)}
}

// Begin notes that the client has done the first step, and waits until all clients have.
func (m *Member) Begin() {
	m.Leave()
	m.begun.Wait()
}

// Leave notes that the other clients need not wait for this client. Only the first call of Begin or
// Leave counts.
func (m *Member) Leave() { m.first.Do(m.begun.Done) }

// Add adds what one client has not released.
func (t *Together) Add(left *Unreleased) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.None() {
		t.left.Name, t.left.Why = left.Name, left.Why
	}
	t.left.Prefix, t.left.N, t.left.Of = left.Prefix, t.left.N+left.N, t.left.Of+left.Of
	t.left.Doubts, t.left.Last = t.left.Doubts+left.Doubts, max(t.left.Last, left.Last)
}

// Err returns the error of all clients, or nil if all locks are released.
func (t *Together) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.None() {
		return nil
	}
	return &t.left
}

// Unreleased is the error of Close: the store may keep locks of the client.
type Unreleased struct {
	Prefix string // of the error
	N, Of  int    // of the locks that were held are not known to be released
	Doubts int    // acquisitions that were given up or released before, and may have a lock or get it
	Name   string // of one of the locks
	Last   time.Duration
	Why    error
}

// None reports whether no lock is kept.
func (e *Unreleased) None() bool { return e.N == 0 && e.Doubts == 0 }

// Note notes that the lock called name may be held for as long as last.
func (e *Unreleased) Note(name string, last time.Duration) {
	if e.Name == "" {
		e.Name = name
	}
	e.Last = max(e.Last, last)
}

func (e *Unreleased) Error() string {
	var counts []string
	if e.Of > 0 {
		counts = append(counts, fmt.Sprintf("%d of %d holds released", e.Of-e.N, e.Of))
	}
	if e.Doubts > 0 {
		counts = append(counts, fmt.Sprintf("acquisitions in doubt: %d", e.Doubts))
	}
	last := (e.Last + time.Second - 1).Truncate(time.Second)
	return fmt.Sprintf("%s: close: %s; locks such as %q may stay held for up to %v: %v",
		e.Prefix, strings.Join(counts, ", "), e.Name, last, e.Why)
}

func (e *Unreleased) Unwrap() error { return e.Why }
