package explore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/unheld"
)

// Lease is a lock as a store has it, for tests of programs that can lose a lock. The store is a
// variable, and the schedule decides the effects of a network and a clock:
//
//   - A hold may be lost at any decision, as if its lease had expired. [locks.Hold.Lost] closes,
//     and the store gives the lock to the next owner, with a greater token.
//   - The answer to a request may be late: other goroutines may run between the moment at which
//     the store grants or frees the lock, and the return of the call.
//
// A Lease is reentrant for its owner, like the locks of package distributed/lease. Its waiters are
// not ordered. Make one for each run by [X.NewLease]. A Lease must not be copied.
type Lease struct {
	x    *X
	name string

	mu   sync.Mutex    // the store's; held for one step, never while a goroutine stops
	now  *leaseHold    // the hold that the store knows, or nil
	mine []*leaseHold  // holds that their owners have not given up, lost ones too
	next uint64        // the next token
	free chan struct{} // closed and replaced when the lock becomes free
}

var _ locks.Leased = (*Lease)(nil)

// NewLease returns a free lock. Its first token is 1.
func (x *X) NewLease(name string) *Lease {
	return &Lease{x: x, name: name, next: 1, free: make(chan struct{})}
}

// leaseHold is one hold of a Lease.
type leaseHold struct {
	l     *Lease
	owner locks.Owner
	token uint64
	count int
	lost  chan struct{}
	loss  *goroutine // stands for the loss
}

// acquire makes o the holder if the lock is free, or adds to its hold. If another owner has it,
// acquire returns a channel that closes when the lock is free.
func (l *Lease) acquire(o locks.Owner) (free <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.mine {
		if h.owner != o {
			continue
		}
		if err := h.Err(); err != nil {
			return nil, err
		}
		h.count++
		return nil, nil
	}
	if l.now != nil {
		return l.free, nil
	}
	h := &leaseHold{l: l, owner: o, token: l.next, count: 1, lost: make(chan struct{})}
	l.next++
	l.mine = append(l.mine, h)
	l.now = h
	h.loss = l.x.add("loss of "+l.name, true)
	go h.loss.run(func() {
		close(h.lost)
		l.release(h)
	})
	return nil, nil
}

// release frees the lock if h is the hold that the store knows.
func (l *Lease) release(h *leaseHold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == h {
		l.now = nil
		close(l.free)
		l.free = make(chan struct{})
	}
}

// hooks returns the scheduler of the test that l belongs to.
func (l *Lease) hooks() hooks {
	if l.x == nil {
		panic("explore: a zero Lease belongs to no test: use X.NewLease")
	}
	return hooks{l.x}
}

// fail returns an error of op.
func (l *Lease) fail(op string, err error) error {
	return fmt.Errorf("explore: %s of lease %q: %w", op, l.name, err)
}

// LockContext implements [locks.Locker].
func (l *Lease) LockContext(ctx context.Context) (err error) {
	l.hooks().Begin("LockContext", l, true)
	defer func() { l.hooks().End(err == nil) }()
	for {
		if err := ctxerr.Check("", ctx); err != nil {
			return l.fail("LockContext", ctxerr.Bare(err))
		}
		free, err := l.acquire(locks.CurrentOwner(ctx))
		if err != nil {
			return l.fail("LockContext", err)
		}
		if free == nil {
			break
		}
		select {
		case <-free:
		case <-ctx.Done():
		}
		l.hooks().Woken()
	}
	l.hooks().Woken() // the answer may be late
	return nil
}

// TryLockContext implements [locks.TryLocker].
func (l *Lease) TryLockContext(ctx context.Context) (ok bool, err error) {
	l.hooks().Begin("TryLockContext", l, true)
	defer func() { l.hooks().End(ok) }()
	if err := ctxerr.Check("", ctx); err != nil {
		return false, l.fail("TryLockContext", ctxerr.Bare(err))
	}
	free, err := l.acquire(locks.CurrentOwner(ctx))
	if err != nil {
		return false, l.fail("TryLockContext", err)
	}
	l.hooks().Woken()
	return free == nil, nil
}

// UnlockContext implements [locks.Locker].
func (l *Lease) UnlockContext(ctx context.Context) error {
	l.hooks().Begin("UnlockContext", l, true)
	defer l.hooks().End(true)
	h, last := l.holdOf(ctx, true)
	if h == nil {
		return l.fail("UnlockContext", l.notHeld(ctx))
	}
	if err := h.Err(); err != nil {
		return l.fail("UnlockContext", err)
	}
	if last {
		h.loss.void.Store(true)
		l.release(h)
	}
	l.hooks().Woken()
	return nil
}

// holdOf returns the hold of ctx's owner, or nil. If gives is true, the owner gives up one of its
// acquisitions, and holdOf reports whether that was the last acquisition.
func (l *Lease) holdOf(ctx context.Context, gives bool) (h *leaseHold, last bool) {
	o := locks.CurrentOwner(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.mine, func(h *leaseHold) bool { return h.owner == o })
	if at < 0 {
		return nil, false
	}
	h = l.mine[at]
	if gives {
		if h.count--; h.count == 0 {
			l.mine = slices.Delete(l.mine, at, at+1)
		}
	}
	return h, h.count == 0
}

// Hold implements [locks.Leased].
func (l *Lease) Hold(ctx context.Context) (locks.Hold, error) {
	if h, _ := l.holdOf(ctx, false); h != nil {
		return h, nil
	}
	return nil, l.fail("Hold", l.notHeld(ctx))
}

// notHeld returns the error of ctx's owner, which does not hold the lock.
func (l *Lease) notHeld(ctx context.Context) error {
	o := locks.CurrentOwner(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.mine {
		return unheld.By(o, "the explore.Lease is held by", "", h.owner)
	}
	return unheld.Free("the explore.Lease")
}

// Lost implements [locks.Hold].
func (h *leaseHold) Lost() <-chan struct{} { return h.lost }

// Err implements [locks.Hold].
func (h *leaseHold) Err() error {
	select {
	case <-h.lost:
		return locks.ErrLost
	default:
		return nil
	}
}

// Token implements [locks.Hold].
func (h *leaseHold) Token() uint64 { return h.token }

// Deadline implements [locks.Hold]: there is none, since the loss is a decision.
func (h *leaseHold) Deadline() (time.Time, bool) { return time.Time{}, false }

// Extend implements [locks.Hold]. A Lease lacks a time to prolong.
func (h *leaseHold) Extend(context.Context, time.Duration) error {
	hooks{h.l.x}.Begin("Extend", h.l, false)
	if err := h.Err(); err != nil {
		return h.l.fail("Extend", err)
	}
	return nil
}
