// Package closing has the state that the clients of a group share while the group closes them. The
// context of its Close tells a client that several clients close together.
package closing

import (
	"context"
	"fmt"
	"sync"
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
	if t.left.N == 0 {
		t.left.Name, t.left.Why = left.Name, left.Why
	}
	t.left.Prefix, t.left.N, t.left.Of = left.Prefix, t.left.N+left.N, t.left.Of+left.Of
}

// Err returns the error of all clients, or nil if all locks are released.
func (t *Together) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.N == 0 {
		return nil
	}
	return &t.left
}

// Unreleased is the error of Close: N of the locks that were held are not known to be released.
type Unreleased struct {
	Prefix string // of the error
	N, Of  int
	Name   string // of one of them
	Why    error
}

func (e *Unreleased) Error() string {
	return fmt.Sprintf("%s: close: %d of %d locks not released, such as %q: %v", e.Prefix, e.N, e.Of, e.Name, e.Why)
}

func (e *Unreleased) Unwrap() error { return e.Why }
