package lease

import (
	"context"
	"errors"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// MaxLabel is how many bytes a label may have, see [WithLabel].
const MaxLabel = identity.MaxLabel

// WithLabel sets the name of this process that [Mutex.Inspect] returns, here and in other
// processes. It is text of at most [MaxLabel] bytes without control characters. The default is the
// name of the host and the process id. A label is data: it does not affect any lock.
func WithLabel(label string) Option { return func(c *driver.Config) { c.Label = label } }

// Inspect describes the lock to people and for monitoring. It asks the store, usually by one or
// two requests, and waits for the answer until ctx ends. The answer describes the past: the lock
// may have another holder when the caller reads it. See [locks.Info].
//
// A process is described by the label, host and process id that it has left in the store, see
// [WithLabel]. A holder or waiter without these, such as one of another library, has as its label
// the name by which the store knows it. For holds and waits of this client, the owner is known
// too.
//
// If neither this client nor the store knows when a hold began, Since is the begin of its
// acquisition, by the clock of its process.
//
// A waiter of another process stands for all waiters in the local queue of that process. The
// local queue of this client is part of the answer, behind the waiters in the store. If the store
// does not know its waiters, Waiting is -1, and Waiters are the waiters of this client. Either
// half of a read-write lock knows the holds and waits of both halves, see [RWMutex].
//
// Inspect returns [errors.ErrUnsupported] if the store is not an [driver.Inspector], and
// [locks.ErrForeign] if something other than a lock is under the name.
func (l *Mutex) Inspect(ctx context.Context) (locks.Info, error) {
	const op = "inspect"
	if err := l.check(ctx); err != nil {
		return locks.Info{}, l.fail(ctx, op, err)
	}
	if l.c.inspector == nil {
		return locks.Info{}, l.fail(ctx, op, errors.ErrUnsupported)
	}
	if !l.c.begin() {
		return locks.Info{}, l.fail(ctx, op, locks.ErrClosed)
	}
	defer l.c.finish()
	s, err := l.c.inspector.Inspect(ctx, l.name)
	if err != nil {
		return locks.Info{}, l.fail(ctx, op, err)
	}
	known := local{claims: make(map[string]locks.Party)}
	for _, half := range []*Mutex{l, l.read, l.write} {
		if half != nil {
			known.add(half)
		}
	}
	return known.merge(s), nil
}

// local has the holds and waits of a lock that this process knows.
type local struct {
	claims  map[string]locks.Party // by acquisition
	asking  []string               // acquisitions that wait in the store
	waiting []locks.Party          // in local queues
}

// add adds the holds and waits that l's client knows.
func (k *local) add(l *Mutex) {
	c := l.c
	self, _ := identity.Parse(c.identity)
	now := c.now()
	shift := c.suspended(now)
	for _, q := range l.queues() {
		p := self
		p.Owner = q.turn.Owner()
		q.mu.Lock()
		g, asks := q.grant, q.asks
		q.mu.Unlock()
		if asks != "" && p.Owner != 0 {
			k.claims[asks] = p
			k.asking = append(k.asking, asks)
		}
		if g != nil {
			p.Since, p.Token = g.taken.Add(-shift), g.token
			p.Left = max(g.end().Sub(now), 0)
			k.claims[g.id.Acquisition] = p
		}
		for _, o := range q.turn.Queued() {
			p := self
			p.Owner = o
			k.waiting = append(k.waiting, p)
		}
	}
}

// merge returns the answer to an inspection: the store's answer s, together with k.
func (k *local) merge(s driver.State) locks.Info {
	info := locks.Info{Held: s.Held || len(s.Holders) > 0, Waiting: s.Waiting}
	info.Shared = s.Shared && info.Held
	for _, h := range s.Holders {
		info.Holders = append(info.Holders, k.party(h))
	}
	placed := make(map[string]bool)
	for _, w := range s.Waiters {
		info.Waiters = append(info.Waiters, k.party(w))
		placed[w.Acquisition] = true
	}
	for _, h := range s.Holders { // it asked a moment ago
		placed[h.Acquisition] = true
	}
	extra := k.waiting
	for _, id := range k.asking {
		if !placed[id] {
			extra = append([]locks.Party{k.party(driver.Claim{Acquisition: id})}, extra...)
		}
	}
	info.Waiters = append(info.Waiters, extra...)
	if info.Waiting >= 0 {
		info.Waiting = max(info.Waiting, len(s.Waiters)) + len(extra)
	}
	return info
}

// party returns what is known of a claim: from the store, from this process, and from its name.
func (k *local) party(claim driver.Claim) locks.Party {
	p := claim.Party
	who, known := identity.Parse(claim.Identity)
	if own, ok := k.claims[claim.Acquisition]; ok {
		who, known = own, true
		p.Owner = own.Owner
		if !own.Since.IsZero() {
			p.Since = own.Since
		}
		if p.Left == 0 {
			p.Left = own.Left
		}
		if p.Token == 0 {
			p.Token = own.Token
		}
	}
	if known {
		p.Label, p.Host, p.PID = who.Label, who.Host, who.PID
	} else if p.Label == "" {
		p.Label = identity.Foreign(claim.Acquisition)
	}
	if p.Since.IsZero() {
		p.Since = identity.Began(claim.Acquisition)
	}
	return p
}

// queues returns the client's local queues of the lock.
func (l *Mutex) queues() []*localQueue {
	if l.c == nil {
		return nil
	}
	if l.conf.Shared {
		return l.c.queues.list(l.name + "\x00")
	}
	if q := l.c.queues.find(l.name); q != nil {
		return []*localQueue{q}
	}
	return nil
}

// Announced holds last for a minute at least and a month at most.
const (
	minAnnounced = time.Minute
	maxAnnounced = 30 * 24 * time.Hour
	// reannounce is how long a client waits after an announcement that has failed.
	reannounce = 10 * time.Second
)

// announce asks the store to keep this client's identity while a hold for d may last. It does not
// wait for the answer.
func (b *base) announce(d time.Duration) {
	if b.announcer == nil {
		return
	}
	d = min(max(d, minAnnounced), maxAnnounced)
	now := b.now()
	before := b.announced.Load()
	after := now.Add(2 * d).UnixNano()
	if before >= now.Add(d).UnixNano() || !b.announced.CompareAndSwap(before, after) || !b.begin() {
		return
	}
	go func() {
		defer b.finish()
		ctx, cancel := context.WithTimeout(b.life, b.patience)
		defer cancel()
		if b.announcer.Announce(ctx, 2*d) != nil {
			b.announced.CompareAndSwap(after, now.Add(d+reannounce).UnixNano())
		}
	}()
}
