package fence

import (
	"errors"
	"fmt"
	"sync"

	"github.com/jucgo/locks"
)

// ErrStale is matched by the error of a token that is smaller than a token seen before: another
// holder has had the lock since. It matches [locks.ErrLost], too.
var ErrStale = fmt.Errorf("stale token: %w", locks.ErrLost)

// ErrNoToken is matched by the error of a token that is 0: the hold's store does not give tokens.
var ErrNoToken = errors.New("no token: this lock gives none, a fenced lock does")

// Gate admits the highest token seen and higher tokens, for each of any number of resources. A Gate
// is in memory: it guards resources that only this process writes, and lasts as long as the
// process.
//
// The zero value is ready to use and has seen no token. A Gate must not be copied after first use.
// It is safe for concurrent use and has no owner. The write in one [Gate.Do] happens before the
// write in a later Do for the same resource. A resource costs an entry in a map until
// [Gate.Forget].
type Gate struct {
	mu        sync.Mutex
	resources map[string]*resource
}

// resource is the state of one resource of a Gate.
//
// highest only grows, and only while mu is held. A writer holds mu until it has finished. So no
// write begins after a write with a higher token has begun.
type resource struct {
	mu      sync.Mutex
	highest uint64
}

func (g *Gate) find(name string) *resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.resources[name]
	if r == nil {
		if g.resources == nil {
			g.resources = make(map[string]*resource)
		}
		r = new(resource)
		g.resources[name] = r
	}
	return r
}

// admit notes token, unless it is stale. r.mu is held.
func (r *resource) admit(op, name string, token uint64) error {
	switch {
	case token == 0:
		return fmt.Errorf("fence: %s of %q: %w", op, name, ErrNoToken)
	case token < r.highest:
		return fmt.Errorf("fence: %s of %q with token %d after %d: %w", op, name, token, r.highest, ErrStale)
	}
	r.highest = token
	return nil
}

// Check returns an error matching [ErrStale] if a higher token was seen for resource, and else
// notes token. A write after a Check may come too late again: do writes in [Gate.Do].
//
// It waits for the end of a Do for the same resource.
func (g *Gate) Check(resource string, token uint64) error {
	r := g.find(resource)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admit("check", resource, token)
}

// Do checks token as [Gate.Check] does, and calls write if it is not stale. One write at a time
// runs for a resource, and no write runs after a write with a higher token. Do returns write's
// error. The token of a write that fails or panics stays noted: a part of the write may have been
// done.
//
// write must not use the Gate for the same resource.
func (g *Gate) Do(resource string, token uint64, write func() error) error {
	r := g.find(resource)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit("write", resource, token); err != nil {
		return err
	}
	return write()
}

// Highest returns the highest token seen for resource, 0 if none was.
func (g *Gate) Highest(resource string) uint64 {
	g.mu.Lock()
	r := g.resources[resource]
	g.mu.Unlock()
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.highest
}

// Raise notes token for resource if it is higher than every token seen, without a write. It is for
// a resource that was restored, with the token that is stored with it.
func (g *Gate) Raise(resource string, token uint64) {
	r := g.find(resource)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.highest = max(r.highest, token)
}

// Forget forgets resource. Every token is admitted for it then. It is for resources that do not
// exist any more, and must not run during a write.
func (g *Gate) Forget(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.resources, resource)
}
