package record

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/burst"
	"github.com/jucgo/locks/internal/ctxerr"
)

// Options select the things that a [Recorder] does besides counting. With zero Options it only
// counts.
type Options struct {
	// Events is the number of events to keep, or 0. Each further event replaces the oldest, and the
	// number of replaced events is counted.
	Events int

	// Hook, if not nil, is called for every event, in the goroutine that caused it, and possibly in
	// many goroutines at a time. For Acquired it runs with the lock held: it should be quick, and
	// must neither panic nor use the lock.
	Hook func(Event)

	// Waits makes [Recorder.Waits] known. It adds a short critical section to each LockContext and
	// Lock, on a mutex of the name.
	Waits bool

	// Held, if not nil, contains each hold with the stack of its first acquisition, until its last
	// release. A re-entry adds nothing. A hold takes about 1.1 µs and two allocations more: the
	// median of five runs of BenchmarkUncontended with Go 1.26.8 on a busy AMD EPYC. All holds of
	// the process acquire the single mutex of the profile. See package debug/locks for a profile
	// that is called "locks.held".
	Held *pprof.Profile

	// Logger, if not nil, logs errors, cancellations, and refused unlocks, and with a Slow of more
	// than 0 also waits and holds of at least Slow. Without a Logger nothing is ever logged.
	Logger *slog.Logger
	Slow   time.Duration
}

// Recorder observes the locks that it has wrapped. Make a Recorder with [New]: a zero Recorder
// panics when it is asked to wrap a lock. A Recorder is safe for concurrent use. A Recorder must
// not be copied.
//
// Its memory is bounded: about 1 kB for each name, and the events that Options.Events asks for.
// Use a name for each kind of lock, as for the labels of a metric, not one for each key.
type Recorder struct {
	opts    Options
	start   time.Time
	reports bool // opts ask for events

	mu     sync.Mutex
	byName map[string]*counters
	ring   []Event // as a ring once it is full
	seen   uint64  // number of events so far

	listeners atomic.Pointer[[]func(context.Context, Event)]
	orders    atomic.Uint64
}

// New returns a Recorder without locks.
func New(opts Options) *Recorder {
	opts.Events = max(opts.Events, 0)
	return &Recorder{
		opts: opts, start: time.Now(), byName: map[string]*counters{},
		reports: opts.Events > 0 || opts.Hook != nil || opts.Logger != nil,
	}
}

// Start returns when the clock of the events began.
func (r *Recorder) Start() time.Time { return r.start }

// Listen makes the Recorder call f for every later event, as it calls [Options.Hook], and with
// the context of the call that caused the event. The context is Background for Lock and Unlock,
// and for a nil context. An exporter of metrics or spans listens. Any number of functions can
// listen. A function cannot stop listening. Listen panics with [locks.ErrNilFunc] if f is nil.
func (r *Recorder) Listen(f func(ctx context.Context, e Event)) {
	if f == nil {
		panic(locks.ErrNilFunc)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []func(context.Context, Event)
	if before := r.listeners.Load(); before != nil {
		all = slices.Clone(*before)
	}
	all = append(all, f)
	r.listeners.Store(&all)
}

// Wrap returns a wrapper that observes l under a name. Locks wrapped under one name share its
// counters. The wrapper implements [locks.Leased], [locks.Inspector] and [sync.Locker] if and only
// if l does. Its Lock, Unlock and Inspect call the methods of l. Lock and Unlock panic as the
// methods of l do. Wrap panics if l is nil, or a nil pointer. For the other methods of l keep l, or
// call [Inner].
//
// The wrapper adds three readings of the clock, two atomic additions and three short critical
// sections to a lock and its unlock. The sections are on a mutex of the name. A leased lock has
// a fourth one. That is several times the cost of an uncontended lock, but little compared with a
// wait. The wrapper allocates nothing, except once for each hold of a [locks.Leased] lock.
func (r *Recorder) Wrap(name string, l locks.TryLocker) locks.TryLocker {
	return r.wrap(name, l, false)
}

// Inner returns l if l has the type L. Otherwise it unwraps l until it finds a lock of type L,
// and reports whether it found such a lock. L is the type of a lock, or an interface with the
// methods that the caller needs. A wrapper is a lock with a method Unwrap() locks.TryLocker, such
// as the locks that [Recorder.Wrap] returns. A Recorder does not see calls of the inner lock
// itself. [errors.AsType] is the same for errors.
func Inner[L any](l locks.TryLocker) (inner L, ok bool) {
	for {
		if inner, ok = l.(L); ok {
			return inner, true
		}
		w, wraps := l.(interface{ Unwrap() locks.TryLocker })
		if !wraps {
			return inner, false
		}
		l = w.Unwrap()
	}
}

// WrapReadWrite returns a wrapper that observes both sides of rw, under "name (read)" and "name
// (write)".
func (r *Recorder) WrapReadWrite(name string, rw locks.ReadWriteLocker) locks.ReadWriteLocker {
	if ctxerr.IsNil(rw) {
		panic("record: WrapReadWrite: nil lock")
	}
	return &pair{
		read:  r.wrap(name+" (read)", rw.ReadLocker(), true),
		write: r.wrap(name+" (write)", rw.WriteLocker(), false),
	}
}

type pair struct{ read, write locks.TryLocker }

func (p *pair) ReadLocker() locks.TryLocker  { return p.read }
func (p *pair) WriteLocker() locks.TryLocker { return p.write }

func (r *Recorder) wrap(name string, l locks.TryLocker, shared bool) locks.TryLocker {
	if ctxerr.IsNil(l) {
		panic("record: Wrap: nil lock")
	}
	if r.byName == nil {
		panic("record: Wrap: a zero Recorder records nothing: use New")
	}
	r.mu.Lock()
	c := r.byName[name]
	if c == nil {
		c = &counters{stats: Stats{Lock: name}}
		r.byName[name] = c
	}
	r.mu.Unlock()
	w := &lock{l: l, r: r, c: c, name: name, shared: shared,
		waitRegion: "wait for " + name, holdTask: "hold " + name}
	leased, canBeLost := l.(locks.Leased)
	w.leased = leased
	plain, hasPlain := l.(sync.Locker)
	inspector, canBeInspected := l.(locks.Inspector)
	switch {
	case canBeLost && hasPlain && canBeInspected:
		return &inspectedLeasedLocker{&leasedLocker{&locker{w, plain}}, inspector}
	case canBeLost && hasPlain:
		return &leasedLocker{&locker{w, plain}}
	case canBeLost && canBeInspected:
		return &inspectedLeasedLock{&leasedLock{w}, inspector}
	case canBeLost:
		return &leasedLock{w}
	case hasPlain && canBeInspected:
		return &inspectedLocker{&locker{w, plain}, inspector}
	case hasPlain:
		return &locker{w, plain}
	case canBeInspected:
		return &inspectedLock{w, inspector}
	}
	return w
}

// counters are the counters of one name.
type counters struct {
	asked atomic.Int64 // the number of calls of LockContext and Lock

	// mu guards the fields below, and the holds of all locks of the name. No code of a lock, a
	// context or a hook runs with it held.
	mu       sync.Mutex
	answered int64            // how many of these calls were answered
	stats    Stats            // without Waiting
	holding  []*lock          // the locks with holds
	calls    map[waiter]calls // that wait, with Options.Waits
	peak     burst.Peak       // of calls
}

// add notes that w has holds from now on.
func (c *counters) add(w *lock) {
	w.place = len(c.holding)
	c.holding = append(c.holding, w)
}

// remove notes that nobody holds w any more.
func (c *counters) remove(w *lock) {
	last := len(c.holding) - 1
	c.holding[w.place] = c.holding[last]
	c.holding[w.place].place = w.place
	c.holding[last] = nil
	c.holding = c.holding[:last]
}

// Stats are the counters of one name. Each counter is exact when no call is under way, even after
// refused unlocks, as long as at most 4,096 owners hold one lock. A call under way may be in some
// of the counters already.
type Stats struct {
	Lock string

	// The number of events of each kind, with re-entries and nested unlocks. Refused does not
	// count an unlock that returned [locks.ErrLost] for a hold that Lost counts.
	Acquired, Released, Cancelled, Failed, Refused uint64

	// TimedOut is the part of Cancelled whose deadline was over. Busy is the part of Failed in
	// which TryLockContext found the lock held. Lost is the number of holds that were lost. A
	// hold counts when its unlock returns [locks.ErrLost]. With a [locks.Leased] lock it counts
	// when it is lost, so that a holder that hangs is seen.
	TimedOut, Busy, Lost uint64

	// The number of waiting calls, and the number of owners that hold the lock.
	Waiting, Held int64

	// Waits has the durations of LockContext and Lock, with and without success. Holds has the
	// times from an owner's first acquisition to its last release.
	Waits, Holds Histogram
}

// Stats returns the counters of all names, in the order of the names. It asks each present hold
// of a [locks.Leased] lock whether it is lost, so its cost grows with the number of such holds.
func (r *Recorder) Stats() []Stats {
	all := []Stats{}
	for _, c := range r.counters() {
		c.lookForLosses()
		c.mu.Lock()
		st := c.stats
		st.Waiting = c.asked.Load() - c.answered
		c.mu.Unlock()
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Lock, b.Lock) })
	return all
}

// counters returns the counters of all names.
func (r *Recorder) counters() []*counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byName))
}

// Hold is a hold that has not ended.
type Hold struct {
	Lock   string          // the name given to Wrap
	Of     locks.TryLocker // the lock that was wrapped, which tells locks of one name apart
	Owner  locks.Owner     // of the call that acquired the lock
	Since  time.Time       // of the owner's first acquisition
	Holds  int             // the number of the owner's holds
	Shared bool            // as in Event
}

// Holds returns all holds that have not ended, the oldest first. A hold that was lost is among
// them until its unlock. The cost grows with the number of holds.
func (r *Recorder) Holds() []Hold {
	var all []Hold
	for _, c := range r.counters() {
		c.mu.Lock()
		for _, w := range c.holding {
			for h := range w.holds {
				all = append(all, Hold{w.name, w.l, h.owner, r.start.Add(h.since), h.n, w.shared})
			}
		}
		c.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Hold) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Owner, b.Owner))
	})
	return all
}

// Events returns the events that were kept and the number of older events that were dropped. The
// events are in the order of their times; events of one moment are in the order in which they
// happened.
func (r *Recorder) Events() (kept []Event, dropped uint64) {
	r.mu.Lock()
	kept = slices.Clone(r.ring)
	dropped = r.seen - uint64(len(r.ring))
	r.mu.Unlock()
	slices.SortFunc(kept, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.order, b.order))
	})
	for i := range kept {
		kept[i].order = 0
	}
	return kept, dropped
}

// at sets the time of e: before a call that releases, after a call that acquires. The clock alone
// may not order the end of one hold before the beginning of the next hold.
func (r *Recorder) at(e *Event) {
	e.At = r.now()
	if r.opts.Events > 0 {
		e.order = r.orders.Add(1)
	}
}

func (r *Recorder) now() time.Duration { return time.Since(r.start) }

// report gives e to the ring, the hook, the listeners and the logger.
func (r *Recorder) report(ctx context.Context, e *Event) {
	if limit := r.opts.Events; limit > 0 {
		ctxerr.Settle(e.Err) // the ring keeps the error, and must not keep the values of a context
		r.mu.Lock()
		if len(r.ring) < limit {
			r.ring = append(r.ring, *e)
		} else {
			r.ring[r.seen%uint64(limit)] = *e
		}
		r.seen++
		r.mu.Unlock()
		e.order = 0
	}
	if r.opts.Hook != nil {
		r.opts.Hook(*e)
	}
	listeners := r.listeners.Load()
	if listeners == nil && r.opts.Logger == nil {
		return
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if listeners != nil {
		for _, f := range *listeners {
			f(ctx, *e)
		}
	}
	if r.opts.Logger != nil {
		r.log(ctx, *e)
	}
}

// log logs e if it is an error or, if Slow is set, slow.
func (r *Recorder) log(ctx context.Context, e Event) {
	attrs := []slog.Attr{slog.String("lock", e.Lock), slog.String("owner", e.Owner.String())}
	say := func(level slog.Level, text string, more ...slog.Attr) {
		r.opts.Logger.LogAttrs(ctx, level, text, append(attrs, more...)...)
	}
	slow := func(d time.Duration) bool { return r.opts.Slow > 0 && d >= r.opts.Slow }
	switch {
	case e.Kind == Refused:
		say(slog.LevelError, "unlock refused", slog.Any("error", e.Err))
	case e.Kind == Failed && e.Err != nil:
		say(slog.LevelError, "lock failed", slog.Duration("wait", e.Wait), slog.Any("error", e.Err))
	case e.Kind == Cancelled:
		say(slog.LevelInfo, "lock cancelled", slog.Duration("wait", e.Wait), slog.Any("error", e.Err))
	case e.Kind == Acquired && !e.Try && slow(e.Wait):
		say(slog.LevelWarn, "slow lock", slog.Duration("wait", e.Wait))
	case e.Kind == Released && e.Holds == 0 && slow(e.Held):
		say(slog.LevelWarn, "long hold", slog.Duration("held", e.Held))
	}
}
