package lease

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/unheld"
)

// Semaphore is the semaphore of one name, whose permits have a lease. The permits are renewed like
// holds of a [Mutex]. If a process dies, its permits return with the end of the lease. Redisson's
// RPermitExpirableSemaphore, and Curator's InterProcessSemaphoreV2. [Client.Semaphore] makes a
// Semaphore; the methods of a zero Semaphore return an error. A Semaphore must not be copied.
//
// The size is an agreement of all processes. Each acquisition is judged by the size that its own
// process has. Therefore a process with a smaller size waits longer.
//
// Goroutines that share one Semaphore ask the store one by one, in order of arrival. A try is
// refused while another goroutine asks, or while a request that was given up is undone. Between
// processes the store decides the order. If the store keeps no order, small acquisitions can pass
// an acquisition of many permits again and again. A process that releases permits and asks again
// at once can pass waiters of other processes.
type Semaphore struct {
	c    *Client
	name string
	size int64
	opts []MutexOption
	turn fair.Mutex   // of the goroutine that asks the store
	bell adapter.Bell // has an element if permits were released here since the last request
}

var (
	_ locks.Semaphore = (*Semaphore)(nil)
	_ locks.Inspector = (*Semaphore)(nil)
)

// Semaphore returns the semaphore called name, of size permits. The [driver.Store] must be a store
// of semaphores, which heeds [driver.Request.Weigh].
func (c *Client) Semaphore(name string, size int64, opts ...MutexOption) *Semaphore {
	return &Semaphore{
		c: c, name: name, size: size, opts: append(opts[:len(opts):len(opts)], WithShared()),
		bell: adapter.NewBell(),
	}
}

// Name returns the name of the semaphore.
func (s *Semaphore) Name() string { return s.name }

// Size returns the number of permits, free and held.
func (s *Semaphore) Size() int64 { return s.size }

// AcquireContext acquires n permits, and waits for them until ctx ends. Its errors are the errors
// of [Mutex.LockContext], and [locks.ErrTooLarge].
func (s *Semaphore) AcquireContext(ctx context.Context, n int64) (locks.Permits, error) {
	const op = "acquire"
	a, err := s.ask(ctx, op, n)
	if err != nil {
		return nil, err
	}
	end := adapter.EndOf(ctx)
	if !s.turn.TryLock() {
		a.l.waited = true
		if err := s.turn.LockContext(ctx); err != nil {
			return nil, a.l.fail(ctx, op, err)
		}
	}
	p, _, err := a.acquire(ctx, end, op, true)
	return p, err
}

// TryAcquireContext acquires n permits if they are free, and reports whether it did. If they are
// not free, it returns nil, false and no error. It waits for the store's answer until ctx ends.
func (s *Semaphore) TryAcquireContext(ctx context.Context, n int64) (p locks.Permits, ok bool, err error) {
	const op = "try acquire"
	a, err := s.ask(ctx, op, n)
	if err != nil {
		return nil, false, err
	}
	end := adapter.EndOf(ctx)
	if !s.turn.TryLock() {
		return nil, false, nil
	}
	return a.acquire(ctx, end, op, false)
}

// Locker returns n permits as a lock, for code that is written against [locks.TryLocker]. An
// owner acquires and releases the permits like a lock, also several times. Unlike a lock, the
// permits can have several owners at the same time, up to the size. Lockers of different n are
// different locks: an owner of both has the permits of both. An owner does not wait for its turn
// in this process. ForceUnlock returns [errors.ErrUnsupported].
func (s *Semaphore) Locker(n int64) *Mutex {
	l := s.c.Mutex(s.name, s.opts...)
	l.permits, l.size = n, s.size
	switch {
	case l.refusal() != nil:
	case n < 1:
		driver.WithRefusal(fmt.Errorf("%d permits, at least 1 is needed", n))(&l.conf)
	case n > s.size:
		l.conf.Refusal = fmt.Errorf("%w: %d of %d", locks.ErrTooLarge, n, s.size)
	}
	return l
}

// ask returns n permits that are to be acquired.
func (s *Semaphore) ask(ctx context.Context, op string, n int64) (*permits, error) {
	l := s.Locker(n)
	if err := l.check(ctx); err != nil {
		return nil, l.fail(ctx, op, err)
	}
	l.nudge = s.bell
	return &permits{s: s, l: l, owner: locks.NewOwner()}, nil
}

// Inspect describes the semaphore like [Mutex.Inspect]. Each holder is an acquisition.
func (s *Semaphore) Inspect(ctx context.Context) (locks.Info, error) {
	info, err := s.c.Mutex(s.name, s.opts...).Inspect(ctx)
	if err != nil {
		return info, err
	}
	info.Shared = info.Held && s.size > 1
	self, _ := identity.Parse(s.c.identity)
	for _, self.Owner = range s.turn.Queued() {
		info.Waiters = append(info.Waiters, self)
		if info.Waiting >= 0 {
			info.Waiting++
		}
	}
	return info, nil
}

// QueueLength returns how many goroutines wait for their turn to ask the store.
func (s *Semaphore) QueueLength() int { return s.turn.QueueLength() }

// String describes the semaphore.
func (s *Semaphore) String() string {
	return fmt.Sprintf("lease.Semaphore(%q)[%d permits, %d queued]", shorten(s.name), s.size, s.QueueLength())
}

// permits are the permits of one acquisition. Each acquisition has an owner of its own, so that
// it is never a re-entry.
type permits struct {
	locks.Hold
	s     *Semaphore
	l     *Mutex
	owner locks.Owner
}

// acquire returns p with its hold, or nil and false if the store refuses. It is called with the
// turn to ask, and ends it.
func (p *permits) acquire(ctx context.Context, end adapter.End, op string, wait bool) (locks.Permits, bool, error) {
	ok, err := func() (bool, error) {
		defer p.s.turn.Unlock()
		return p.l.acquire(locks.WithOwner(ctx, p.owner), end, p.owner, wait)
	}()
	if !ok {
		return nil, false, p.l.fail(ctx, op, p.l.explain(ctx, err))
	}
	p.Hold = p.l.holdOf(p.owner, nil)
	return p, true, nil
}

// Count returns the number of permits.
func (p *permits) Count() int64 { return p.l.permits }

// errPermits is the error of a second release.
var errPermits = unheld.Because("the permits are released already")

// ReleaseContext gives the permits back. See [Mutex.UnlockContext].
func (p *permits) ReleaseContext(ctx context.Context) error {
	q := p.l.queueOf(p.owner)
	if q == nil {
		return p.l.fail(ctx, "release", errPermits)
	}
	err := q.unlock(p.owner)
	if err == locks.ErrNotHeld {
		err = errPermits
	}
	p.s.bell.Ring() // a polled store notifies no waiter
	return p.l.fail(ctx, "release", err)
}
