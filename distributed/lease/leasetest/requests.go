package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Op is a method of a driver.Store or of one of its optional interfaces.
type Op string

// The requests to a store.
const (
	Acquire    Op = "Acquire"
	Lookup     Op = "Lookup"
	Renew      Op = "Renew"
	Release    Op = "Release"
	ReleaseAll Op = "ReleaseAll"
	Watch      Op = "Watch"
	Enqueue    Op = "Enqueue"
	Leave      Op = "Leave"
	Break      Op = "Break"
	Inspect    Op = "Inspect"
	Contended  Op = "Contended"
	Announce   Op = "Announce"
)

// Fault is a fault of a request.
type Fault string

// The faults of requests. After each fault but Repeated, the caller does not know whether the
// store carried the request out.
const (
	// LostRequest never comes to the store. The caller gets an error at once.
	LostRequest Fault = "the request is lost"
	// LostReply is carried out. The caller gets an error.
	LostReply Fault = "the reply is lost"
	// SilentRequest never comes to the store. The caller gets no answer until its ctx ends, or an
	// error with [Requests.Heal].
	SilentRequest Fault = "the request is lost in silence"
	// SilentReply is carried out. The caller gets no answer until its ctx ends, or an error with
	// [Requests.Heal].
	SilentReply Fault = "the reply is lost in silence"
	// Late comes to the store only with [Requests.Deliver]. The caller gets an error at once. A
	// late Watch never comes, because the caller may have another Watch of its acquisition by
	// then.
	Late Fault = "the request is late"
	// Repeated is carried out twice. The caller gets the first answer. A Watch is closed before the
	// second Watch begins, and the caller gets the second Watch.
	Repeated Fault = "the request is repeated"
)

// ErrFault is matched by the errors of requests that suffered a [Fault].
var ErrFault = errors.New("a fault of the test")

// Requests is a driver.Store that forwards requests to another Store, and causes faults. It has
// the optional interfaces of the other Store, as lease.New sees them. Give [Requests.Wrap] to
// lease.WithWrapper, or call [NewRequests]. It is safe for concurrent use. A Requests must not be
// copied.
type Requests struct {
	inner  driver.Store
	log    *journal
	who    int      // the client's number in log
	lags   bool     // each request takes some time, as on a network
	port   *process // in a simulation, or nil
	server int      // which of several servers of a simulation has the Store
	shares bool     // the locks of the Store are shared, in a simulation

	mu     sync.Mutex
	client string // from Identify, if that was called
	faults map[Op][]Fault
	always map[Op]Fault
	late   []func()
	counts map[Op]int
	lost   []driver.HoldID   // of NotifyLoss
	last   map[string]string // the last acquisition, by name
	dead   bool
	buried chan struct{} // is closed by Heal if the client is dead
	healed chan struct{} // is closed and replaced by Heal
}

var _ interface {
	driver.Store
	driver.Queue
	driver.Session
	driver.LossNotifier
	driver.ContentionProber
	driver.Breaker
	driver.Inspector
	driver.Announcer
	driver.BatchReleaser
} = (*Requests)(nil)

// NewRequests returns a Requests around s.
func NewRequests(s driver.Store) *Requests { return newRequests(s, newJournal(), 0) }

func newRequests(s driver.Store, log *journal, who int) *Requests {
	return &Requests{
		inner: s, log: log, who: who,
		faults: make(map[Op][]Fault), always: make(map[Op]Fault), counts: make(map[Op]int),
		last:   make(map[string]string),
		buried: make(chan struct{}), healed: make(chan struct{}),
	}
}

// Unwrap returns the Store to which requests go.
func (r *Requests) Unwrap() driver.Store { return r.inner }

// Next makes the next requests of this kind suffer these faults, one each.
func (r *Requests) Next(op Op, faults ...Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[op] = append(r.faults[op], faults...)
}

// Always makes all requests of this kind suffer f, after the faults of [Requests.Next], until
// [Requests.Heal].
func (r *Requests) Always(op Op, f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.always[op] = f
}

// Heal ends all faults. Late requests stay late. Requests without an answer fail, as with the end
// of their connection. All requests of a dead client fail from then on, so that it can be closed.
func (r *Requests) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.faults)
	clear(r.always)
	close(r.healed)
	r.healed = make(chan struct{})
	if r.dead {
		select {
		case <-r.buried:
		default:
			close(r.buried)
		}
	}
}

// planned says whether a fault of [Requests.Next] is still to come.
func (r *Requests) planned(op Op) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults[op]) > 0
}

// Deliver brings the requests that are [Late] to the store, in order, and returns how many these
// were. It waits for ten seconds at most for the answer to each, such as on a [Link] that is cut.
func (r *Requests) Deliver() int {
	r.mu.Lock()
	late := r.late
	r.late = nil
	r.mu.Unlock()
	for _, deliver := range late {
		deliver()
	}
	return len(late)
}

// Count returns how many requests of these kinds there were, of all kinds if none is given.
func (r *Requests) Count(ops ...Op) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	if len(ops) == 0 {
		for _, count := range r.counts {
			n += count
		}
		return n
	}
	for _, op := range ops {
		n += r.counts[op]
	}
	return n
}

// Die stops the client's requests for ever, as if its process were killed: none comes to the
// store, and no answer comes back.
func (r *Requests) Die() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
}

// next counts a request and returns what happens to it, and when silence ends.
func (r *Requests) next(op Op) (f Fault, healed <-chan struct{}, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[op]++
	if left := r.faults[op]; len(left) > 0 {
		f, r.faults[op] = left[0], left[1:]
	} else {
		f = r.always[op]
	}
	if r.dead {
		return SilentRequest, r.buried, true
	}
	return f, r.healed, false
}

// identified returns the client's name in the store, if the store was told one.
func (r *Requests) identified() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client
}

func (r *Requests) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// request carries out call, or lets it suffer a fault.
func request[T any](r *Requests, ctx context.Context, op Op, what string,
	call func(context.Context) (T, error)) (T, error) {
	if r.port != nil {
		return simulate(r, ctx, op, what, call)
	}
	fault, healed, dead := r.next(op)
	if op == Watch && fault == Late {
		fault = LostRequest
	}
	if r.lags {
		call = lagging(call)
	}
	result, err := suffer(r, ctx, fault, healed, call)
	if !dead && r.isDead() { // the answer comes to a dead client
		discard(result, err)
		result, err = silence[T](ctx, r.buried)
	}
	note := string(fault)
	if fault != "" {
		note = ", " + note
	}
	if err != nil {
		r.log.add(r.who, "%s %s: error %v%s", op, what, err, note)
	} else {
		r.log.add(r.who, "%s %s: %s%s", op, what, short(result), note)
	}
	return result, err
}

// lagging makes call take some time before the store decides, and some time afterwards.
func lagging[T any](call func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		time.Sleep(lag())
		defer func() { time.Sleep(lag()) }()
		return call(ctx)
	}
}

func suffer[T any](r *Requests, ctx context.Context, fault Fault, healed <-chan struct{},
	call func(context.Context) (T, error)) (T, error) {
	var none T
	lost := fmt.Errorf("%w: %s", ErrFault, fault)
	switch fault {
	case LostRequest:
		return none, lost
	case LostReply:
		discard(call(ctx))
		return none, lost
	case SilentRequest:
		return silence[T](ctx, healed)
	case SilentReply:
		discard(call(ctx))
		return silence[T](ctx, healed)
	case Late:
		late := func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			result, err := call(ctx)
			discard(result, err)
			r.log.add(r.who, "a late request arrives: error %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = append(r.late, late)
		return none, lost
	case Repeated:
		result, err := call(ctx)
		if w, ok := any(result).(driver.Watch); ok {
			w.Close() // an acquisition has one at a time
			return call(ctx)
		}
		discard(call(context.WithoutCancel(ctx)))
		return result, err
	}
	return call(ctx)
}

// discard ends a Watch that its caller does not get.
func discard[T any](result T, _ error) {
	if w, ok := any(result).(driver.Watch); ok {
		w.Close()
	}
}

func silence[T any](ctx context.Context, healed <-chan struct{}) (none T, err error) {
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-healed:
		return none, fmt.Errorf("%w: the connection has ended", ErrFault)
	}
}

// short describes the result of a request.
func short(result any) string {
	switch x := result.(type) {
	case driver.Reply:
		text := "refused"
		if x.Held {
			text = fmt.Sprintf("held, token %d", x.Token)
		} else if x.Wait > 0 {
			text += fmt.Sprintf(" for %v", x.Wait.Round(time.Millisecond))
		}
		return text
	case driver.Released:
		if x.Held {
			return "released"
		}
		return "was not held"
	case struct{}:
		return "done"
	case driver.Watch: // which other goroutines use
		return "a watch"
	}
	return fmt.Sprintf("%+v", result)
}

// tail is the part of an acquisition's name that tells it from others of its client.
func tail(acquisition string) string {
	if _, serial, ok := strings.Cut(acquisition, ":"); ok {
		return serial
	}
	return acquisition
}

func about(id driver.HoldID) string { return fmt.Sprintf("%q by %s", id.Name, tail(id.Acquisition)) }

// asks remembers the acquisition.
func (r *Requests) asks(id driver.HoldID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[id.Name] = id.Acquisition
}

// asked returns the last acquisition of the lock called name.
func (r *Requests) asked(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[name]
}

func (r *Requests) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r.asks(req.HoldID)
	end := r.port.asks(req.HoldID)
	reply, err := request(r, ctx, Acquire, about(req.HoldID), func(ctx context.Context) (driver.Reply, error) {
		return r.ledger().acquire(ctx, r, req, false, func() (driver.Reply, error) { return r.inner.Acquire(ctx, req) })
	})
	end(reply.Held, err)
	return reply, err
}

func (r *Requests) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	end := r.port.asks(req.HoldID)
	reply, err := request(r, ctx, Lookup, about(req.HoldID), func(ctx context.Context) (driver.Reply, error) {
		return r.ledger().lookup(r, req, func() (driver.Reply, error) { return r.inner.Lookup(ctx, req) })
	})
	end(reply.Held, err)
	return reply, err
}

// aboutAll names the holds of one request.
func aboutAll(holds []driver.HoldID) string {
	var what []string
	for _, id := range holds {
		what = append(what, about(id))
	}
	return strings.Join(what, ", ")
}

func (r *Requests) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	r.port.leaves(ids...)
	end := r.port.asks(ids...)
	done, err := request(r, ctx, ReleaseAll, aboutAll(ids), func(ctx context.Context) ([]bool, error) {
		return r.ledger().releaseAll(r, ids, func() ([]bool, error) {
			return r.inner.(driver.BatchReleaser).ReleaseAll(ctx, ids)
		})
	})
	end(false, err)
	return done, err
}

func (r *Requests) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	end := r.port.asks(holds...)
	ok, err := request(r, ctx, Renew, aboutAll(holds), func(ctx context.Context) ([]bool, error) {
		return r.renew(ctx, holds, d)
	})
	end(false, err)
	if err != nil {
		r.ledger().renewsAgain(r, holds, ok, d)
	}
	for i, id := range holds[:min(len(ok), len(holds))] {
		if err == nil && !ok[i] {
			r.port.hears(r, id)
		}
	}
	return ok, err
}

func (r *Requests) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	r.port.leaves(id)
	end := r.port.asks(id)
	reply, err := request(r, ctx, Release, about(id), func(ctx context.Context) (driver.Released, error) {
		return r.ledger().release(r, id, func() (driver.Released, error) { return r.inner.Release(ctx, id) })
	})
	end(false, err)
	return reply, err
}

func (r *Requests) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return request(r, ctx, Watch, about(id), func(ctx context.Context) (driver.Watch, error) {
		return r.watch(ctx, id)
	})
}

func (r *Requests) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r.asks(req.HoldID)
	end := r.port.asks(req.HoldID)
	reply, err := request(r, ctx, Enqueue, about(req.HoldID), func(ctx context.Context) (driver.Reply, error) {
		return r.ledger().acquire(ctx, r, req, true, func() (driver.Reply, error) {
			return r.inner.(driver.Queue).Enqueue(ctx, req)
		})
	})
	end(reply.Held, err)
	return reply, err
}

func (r *Requests) Leave(ctx context.Context, id driver.HoldID) error {
	r.port.leaves(id)
	end := r.port.asks(id)
	_, err := request(r, ctx, Leave, about(id), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.ledger().leave(r, id, func() error { return r.inner.(driver.Queue).Leave(ctx, id) })
	})
	end(false, err)
	return err
}

func (r *Requests) Break(ctx context.Context, name string) (bool, error) {
	return request(r, ctx, Break, name, func(ctx context.Context) (bool, error) {
		return r.ledger().force(r, name, func() (bool, error) { return r.inner.(driver.Breaker).Break(ctx, name) })
	})
}

func (r *Requests) Inspect(ctx context.Context, name string) (driver.State, error) {
	return request(r, ctx, Inspect, name, func(ctx context.Context) (driver.State, error) {
		return r.ledger().inspect(r, name, func() (driver.State, error) {
			return r.inner.(driver.Inspector).Inspect(ctx, name)
		})
	})
}

func (r *Requests) Contended(ctx context.Context, name string) (bool, error) {
	return request(r, ctx, Contended, name, func(ctx context.Context) (bool, error) {
		return r.ledger().contended(r, name, func() (bool, error) {
			return r.inner.(driver.ContentionProber).Contended(ctx, name)
		})
	})
}

func (r *Requests) Announce(ctx context.Context, ttl time.Duration) error {
	_, err := request(r, ctx, Announce, "", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.inner.(driver.Announcer).Announce(ctx, ttl)
	})
	return err
}

func (r *Requests) Term() time.Duration { return r.inner.(driver.Session).Term() }

func (r *Requests) Lost(id driver.HoldID) {
	if r.port != nil {
		r.port.lost(r, id)
		return
	}
	r.inner.(driver.Session).Lost(id)
}

func (r *Requests) Identify(client, identity string) {
	r.mu.Lock()
	r.client = client
	r.mu.Unlock()
	r.inner.(driver.Inspector).Identify(client, identity)
}

func (r *Requests) NotifyLoss(lost func(id driver.HoldID, cause error)) {
	r.inner.(driver.LossNotifier).NotifyLoss(func(id driver.HoldID, cause error) {
		r.log.add(r.who, "the store says that %s is lost: %v", about(id), cause)
		r.mu.Lock()
		r.lost = append(r.lost, id)
		r.mu.Unlock()
		r.ledger().notified(r, id)
		r.port.hears(r, id)
		lost(id, cause)
	})
}

// losses returns how often the store said that a hold is lost.
func (r *Requests) losses(name, acquisition string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.lost {
		if id.Name == name && id.Acquisition == acquisition {
			n++
		}
	}
	return n
}
