package deadlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/test/locktest"
)

// party is a goroutine in a bubble that locks and unlocks at the test's command.
type party struct {
	me     locks.Owner // whom the locks see
	in     locks.Owner // the goroutine
	ctx    context.Context
	cancel context.CancelFunc
	do     chan func()
	err    error // of the last LockContext that has returned
	back   bool
}

// latest is the greatest goroutine among the parties.
var latest locks.Owner

// newParty returns a party whose goroutine is greater than those before it: identities are given
// out in batches, but cycles start with the least.
func newParty(ctx context.Context) *party {
	for {
		p := tryParty(ctx)
		if p.in > latest {
			latest = p.in
			return p
		}
		end(p)
	}
}

func tryParty(ctx context.Context) *party {
	p := &party{do: make(chan func())}
	p.ctx, p.cancel = context.WithCancel(ctx)
	started := make(chan struct{})
	go func() {
		p.in, p.me = locktest.Me(), locks.CurrentOwner(ctx)
		close(started)
		for f := range p.do {
			f()
		}
	}()
	<-started
	return p
}

func goroutine(t *testing.T) *party { return newParty(t.Context()) }

// run lets p do f, and returns when all goroutines block.
func (p *party) run(f func()) {
	p.back = false
	p.do <- func() { f(); p.back = true }
	synctest.Wait()
}

func (p *party) lock(l locks.Locker) error {
	p.err = nil
	p.run(func() { p.err = l.LockContext(p.ctx) })
	return p.err
}

func (p *party) unlock(t *testing.T, l locks.Locker) {
	t.Helper()
	var err error
	p.run(func() { err = l.UnlockContext(p.ctx) })
	require.NoError(t, err)
}

// end ends the waits of ps, and then their goroutines.
func end(ps ...*party) {
	for _, p := range ps {
		p.cancel()
	}
	synctest.Wait()
	for _, p := range ps {
		close(p.do)
	}
}

// parties returns the parties of the cycles.
func parties(cycles []deadlock.Cycle) [][]locks.Owner {
	var all [][]locks.Owner
	for _, c := range cycles {
		var ps []locks.Owner
		for _, w := range c {
			ps = append(ps, w.Party)
		}
		all = append(all, ps)
	}
	return all
}

// shared is a lock with shared holders that are known.
type shared struct {
	s     syncq.Reentrant
	kind  syncq.Kind
	mu    sync.Mutex
	table []int64 // the readers
}

func newShared(policy syncq.Policy) *shared {
	l := &shared{s: syncq.NewReentrant(policy)}
	l.kind = syncq.Kind{Name: "shared", Refusable: true, Holders: func(*syncq.Sync) []int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.Clone(l.table)
	}}
	return l
}

func (l *shared) LockContext(ctx context.Context) error {
	me := int64(locks.CurrentOwner(ctx))
	if l.s.Reenter(me) == syncq.Acquired {
		return nil
	}
	if l.s.Acquire(syncq.Owned(me).Of(&l.kind), park.Until(ctx)) != syncq.Acquired {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return locks.ErrDeadlock
	}
	return nil
}

func (l *shared) UnlockContext(ctx context.Context) error {
	if !l.s.Release(int64(locks.CurrentOwner(ctx))) {
		return locks.ErrNotHeld
	}
	return nil
}

// reader is the read side.
type reader struct{ *shared }

func (r reader) LockContext(ctx context.Context) error {
	me := int64(locks.CurrentOwner(ctx))
	if r.s.AcquireShared(syncq.Owned(me).Of(&r.kind), park.Until(ctx)) != syncq.Acquired {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return locks.ErrDeadlock
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table = append(r.table, me)
	return nil
}

func (r reader) UnlockContext(ctx context.Context) error {
	r.mu.Lock()
	i := slices.Index(r.table, int64(locks.CurrentOwner(ctx)))
	r.table = slices.Delete(r.table, i, i+1)
	r.mu.Unlock()
	r.s.Unlock()
	return nil
}
