package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Mutex is the lock of one name. Its owner is the goroutine that acquired it, or the [locks.Owner]
// of the context. The owner may acquire it again. All Mutexes of one name and Client are the same
// lock. [Client.Mutex] makes a Mutex; the methods of a zero Mutex return an error. A Mutex must not
// be copied.
//
// An acquisition waits in the local queue first, in order of arrival, and then for the store.
// TryLockContext waits for the store's answer only. It may return false although the lock is
// free, while another local attempt is failing or is being undone.
//
// Re-entry, unlock and inspection of a lost hold return [locks.ErrLost]. The owner unlocks a lost
// lock as often as it has locked it, and may then acquire it anew.
type Mutex struct {
	c             *Client
	name          string
	conf          driver.MutexConfig
	permits, size int64           // of a semaphore, see Request
	waited        bool            // for the turn to ask: see Semaphore
	nudge         <-chan struct{} // a release in this process, or nil
	read          *Mutex          // the other half of a write half
	write         *Mutex          // the other half of a read half
	last          atomic.Pointer[localQueue]
}

var (
	_ locks.Leased    = (*Mutex)(nil)
	_ locks.Inspector = (*Mutex)(nil)
)

// MutexOption changes how [Client.Mutex] makes a lock.
type MutexOption func(*driver.MutexConfig)

// WithFixedTTL makes holds end after d. They are not renewed.
func WithFixedTTL(d time.Duration) MutexOption {
	if d < time.Millisecond {
		return driver.WithRefusal(fmt.Errorf("lease of %v, at least 1ms is needed", d))
	}
	return func(c *driver.MutexConfig) { c.FixedTTL = d }
}

// WithShared makes a lock that several owners hold at a time, such as the read half of a
// read-write lock. Each owner has a hold of its own and asks the store itself. No owner waits
// locally for another owner.
func WithShared() MutexOption { return func(c *driver.MutexConfig) { c.Shared = true } }

// WithoutReentry makes a lock that its owner cannot acquire again. LockContext by the owner returns
// [locks.ErrDeadlock], because it would wait for itself. TryLockContext by the owner reports false.
func WithoutReentry() MutexOption { return func(c *driver.MutexConfig) { c.WithoutReentry = true } }

// Mutex returns the lock called name.
func (c *Client) Mutex(name string, opts ...MutexOption) *Mutex {
	l := &Mutex{c: c, name: name}
	if !c.made() {
		l.c = nil
	}
	for _, o := range opts {
		o(&l.conf)
	}
	return l
}

// made reports whether c comes from [New].
func (c *Client) made() bool { return c != nil && c.open != nil }

// errNoClient is the error of a zero Mutex, and of a lock of a zero Client.
var errNoClient = errors.New("a zero lock or client, make a client by lease.New, and locks by its Mutex")

// refusal returns why every call with the lock is refused, or nil.
func (l *Mutex) refusal() error {
	if l.c == nil {
		return errNoClient
	}
	return l.conf.Refusal
}

// fixed reports whether holds are not renewed.
func (l *Mutex) fixed() bool { return l.conf.FixedTTL > 0 }

// Locker returns the lock called name. It is a [*Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Name returns the name of the lock.
func (l *Mutex) Name() string { return l.name }

// LockKey names the lock and its store, with the same text in every process. [locks.Multi] orders
// locks by the name, see [driver.WithPlace]. The text is empty if the lock is refused: its name may
// then be the name of another lock.
func (l *Mutex) LockKey() string {
	if l.refusal() != nil {
		return ""
	}
	return l.c.namePrefix + l.name + "\x00" + l.c.where + l.number()
}

// SameLock reports whether other, which has the same [Mutex.LockKey], is this lock. Two clients
// of one store have equal keys, and clients of two stores may have equal keys. If the other lock
// is held by another client of this process, SameLock asks the store who holds this lock, until
// ctx ends. It does not ask the store if ctx has ended. An error is the store's error, or says
// why the lock is refused.
func (l *Mutex) SameLock(ctx context.Context, other locks.TryLocker) (bool, error) {
	const op = "same lock"
	o, ok := other.(*Mutex)
	switch {
	case l.refusal() != nil:
		return false, l.fail(ctx, op, l.refusal())
	case !ok:
		return false, nil
	case l.c == o.c:
		return l.name == o.name && l.conf.Shared == o.conf.Shared && l.permits == o.permits, nil
	case l.c.inspector == nil || adapter.Check(ctx) != nil || !l.c.begin():
		return false, nil
	}
	defer l.c.finish()
	held := o.grants()
	if len(held) == 0 {
		return false, nil
	}
	s, err := l.c.inspector.Inspect(ctx, l.name)
	if err != nil {
		return false, l.fail(ctx, op, err)
	}
	return slices.ContainsFunc(s.Holders, func(holder driver.Claim) bool {
		return slices.ContainsFunc(held, func(g *grant) bool { return g.id.Acquisition == holder.Acquisition })
	}), nil
}

// number is the end of a key, which tells apart locks of different numbers of permits.
func (l *Mutex) number() string {
	if l.permits == 0 {
		return ""
	}
	return "\x00" + strconv.FormatInt(l.permits, 10)
}

// LockContext acquires the lock, and waits for it until ctx ends.
//
// If the first request fails, LockContext returns the error, or goes on if the error is temporary,
// see [WithRetry]. If a later request fails, LockContext asks again, at least every two seconds,
// unless the store has refused the request itself, or something other than a lock is under the
// name. If ctx ends first, the error matches ctx's error and the store's last error.
func (l *Mutex) LockContext(ctx context.Context) error {
	_, err := l.lock(ctx, "lock", true)
	return err
}

// TryLockContext acquires the lock if nobody holds it. It waits for the store's answer until ctx
// ends.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	return l.lock(ctx, "try lock", false)
}

func (l *Mutex) lock(ctx context.Context, op string, wait bool) (bool, error) {
	if err := l.check(ctx); err != nil {
		return false, l.fail(ctx, op, err)
	}
	o := locks.CurrentOwner(ctx)
	if l.conf.WithoutReentry {
		if h := l.holdOf(o, nil); h != nil {
			err := h.Err()
			if err == nil && wait {
				err = fmt.Errorf("held by the caller: %w", locks.ErrDeadlock)
			}
			return false, l.fail(ctx, op, err)
		}
	} else if q := l.queueOf(o); q != nil {
		if held, err := q.reenter(o); held {
			return err == nil, l.fail(ctx, op, err)
		}
	}
	ok, err := l.acquire(ctx, adapter.EndOf(ctx), o, wait)
	return ok, l.fail(ctx, op, l.explain(ctx, err))
}

// UnlockContext releases one hold. The release of the last hold hands the lock off to the first
// local waiter, or gives it back to the store. It retries until the release timeout, whether ctx
// has ended or not, and returns then, whatever the store's client does.
//
// If the store does not confirm the release, the error matches [locks.ErrLost] and the store's
// error: whether the lock was held until now is unknown. The release is then retried in the
// background, until the lease has ended.
func (l *Mutex) UnlockContext(ctx context.Context) error {
	o := locks.CurrentOwner(ctx)
	q := l.queueOf(o)
	err := locks.ErrNotHeld
	if q != nil {
		err = q.unlock(o)
	}
	if err == locks.ErrNotHeld {
		err = l.notHeld(o)
	}
	return l.fail(ctx, "unlock", err)
}

// Hold returns the current hold of ctx's owner, or an error matching [locks.ErrNotHeld].
func (l *Mutex) Hold(ctx context.Context) (locks.Hold, error) {
	o := locks.CurrentOwner(ctx)
	if h := l.holdOf(o, nil); h != nil {
		return h, nil
	}
	return nil, l.fail(ctx, "hold", l.notHeld(o))
}

// holdOf returns o's hold or nil. If there is such a hold, and look is not nil, holdOf calls look
// with the local queue locked.
func (l *Mutex) holdOf(o locks.Owner, look func(*hold)) *hold {
	q := l.find(l.key(o))
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holdOf(o)
	if h != nil && look != nil {
		look(h)
	}
	return h
}

// ForceUnlock frees the lock without its holder's consent, here or elsewhere, and reports whether
// it was held. It is for administrators: the holder's work goes on. A holder of this client is
// told at once. A holder of another client is told by its store, if the store can notify, or else
// by its next renewal. The holder's unlock returns [locks.ErrLost].
//
// ForceUnlock waits for the store's answer until ctx ends. It returns [errors.ErrUnsupported] if
// the store is not a [driver.Breaker], and [locks.ErrForeign] if something other than a lock is
// under the name.
func (l *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	const op = "force unlock"
	if err := l.check(ctx); err != nil {
		return false, l.fail(ctx, op, err)
	}
	if l.c.breaker == nil || l.permits > 0 { // not all stores could free the permits of all holders
		return false, l.fail(ctx, op, errors.ErrUnsupported)
	}
	if !l.c.begin() {
		return false, l.fail(ctx, op, locks.ErrClosed)
	}
	defer l.c.finish()
	local := l.grants()
	broken, err := l.c.breaker.Break(ctx, l.name)
	if err != nil {
		return false, l.fail(ctx, op, err)
	}
	if broken {
		for _, g := range local { // the grants that have not ended by themselves are lost now
			l.c.schedule.lose(g, errForced)
		}
	}
	return broken, nil
}

var errForced = errors.New("freed by ForceUnlock")

// QueueLength returns how many goroutines wait in the local queue. A [WithShared] lock is without a
// local queue.
func (l *Mutex) QueueLength() int {
	if q := l.find(l.name); q != nil {
		return q.turn.QueueLength()
	}
	return 0
}

// String describes the lock and its state in this process.
func (l *Mutex) String() string {
	state := "not held here"
	if l.conf.Shared {
		state = fmt.Sprintf("%d owners here", len(l.queues()))
	} else if q := l.find(l.name); q != nil {
		if o := q.turn.Owner(); o != 0 {
			state = "first in the local queue: " + o.String()
		}
	}
	return fmt.Sprintf("lease.Mutex(%q)[%s, %d queued]", shorten(l.name), state, l.QueueLength())
}

// key is the key of o's local queue.
func (l *Mutex) key(o locks.Owner) string {
	if !l.conf.Shared {
		return l.name
	}
	return l.name + "\x00" + strconv.FormatInt(int64(o), 10) + l.number()
}

// queueOf returns the local queue if it is o's turn there, or nil. It looks at the queue used here
// last before it locks the client's queues: a queue in use is not forgotten.
func (l *Mutex) queueOf(o locks.Owner) *localQueue {
	if q := l.last.Load(); q != nil && q.turn.Owner() == o {
		return q
	}
	if q := l.find(l.key(o)); q != nil && q.turn.Owner() == o {
		return q
	}
	return nil
}

// find returns the local queue of key, or nil. A refused lock is without a local queue: an adapter
// may have cut its name, and another lock may have the name that is left.
func (l *Mutex) find(key string) *localQueue {
	if l.refusal() != nil {
		return nil
	}
	return l.c.queues.find(key)
}

// grants returns the holds that this client has of the lock.
func (l *Mutex) grants() (gs []*grant) {
	for _, q := range l.queues() {
		q.mu.Lock()
		if q.grant != nil {
			gs = append(gs, q.grant)
		}
		q.mu.Unlock()
	}
	return gs
}

// check returns the error of ctx, or why the lock is refused.
func (l *Mutex) check(ctx context.Context) error {
	if err := adapter.Check(ctx); err != nil {
		return err
	}
	return l.refusal()
}

// use returns o's local queue with one more user.
func (l *Mutex) use(o locks.Owner) (*localQueue, error) {
	if l.conf.Shared {
		return l.c.queues.use(l.key(o), nil)
	}
	last := l.last.Load()
	q, err := l.c.queues.use(l.name, last)
	if err == nil && q != last {
		l.last.Store(q)
	}
	return q, err
}

// term is the time for which the store is asked to give the lock.
func (l *Mutex) term() time.Duration {
	if l.fixed() {
		return l.c.longest(l.conf.FixedTTL)
	}
	return l.c.term()
}
