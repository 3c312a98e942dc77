package locksdebug

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/leases"
	"github.com/jucgo/locks/internal/stacks"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/waits"
	"github.com/jucgo/locks/record"
)

// snapshot has the data of one answer. Its JSON is the format of ?format=json. Times without a
// value are unknown. A stack is the index of one of Stacks plus one, or 0 if it is unknown.
type snapshot struct {
	At         time.Time     `json:"at"`
	Program    string        `json:"program"`
	Host       string        `json:"host"`
	PID        int           `json:"pid"`
	Go         string        `json:"go"`
	Goroutines int           `json:"goroutines"`
	Stopped    float64       `json:"stoppedSeconds"`     // at most: how long this answer stopped the program
	NoStacks   bool          `json:"noStacks,omitempty"` // there are more than maxGoroutines
	Cycles     []cycle       `json:"cycles"`
	Orphans    []orphan      `json:"orphans"`
	Locks      []*lock       `json:"locks"`   // most urgent first
	Leases     []lease       `json:"leases"`  // most urgent first
	Watched    []description `json:"watched"` // what WithInspector has registered, in that order
	History    []history     `json:"history"` // of each name of a recorder, most contended first
	Stacks     []string      `json:"stacks"`

	stacks map[string]int // index in Stacks plus one
	all    map[int64]stacks.Goroutine
	Filter string `json:"-"` // a part of the names of what is shown, but for cycles and orphans
}

// keep drops all rows whose names do not contain the text of the filter.
func (s *snapshot) keep() {
	without := func(name string) bool { return !strings.Contains(name, s.Filter) }
	s.Locks = slices.DeleteFunc(s.Locks, func(l *lock) bool { return without(l.Name) })
	s.Leases = slices.DeleteFunc(s.Leases, func(l lease) bool { return without(l.Name) })
	s.Watched = slices.DeleteFunc(s.Watched, func(d description) bool { return without(d.Name) })
	s.History = slices.DeleteFunc(s.History, func(h history) bool { return without(h.Name) })
	slices.SortStableFunc(s.History, func(a, b history) int { return cmp.Compare(b.Waited, a.Waited) })
}

// cycle is a cycle of waits.
type cycle struct {
	// Certain is true if nothing inside the cycle can end it.
	Certain bool   `json:"certain"`
	Steps   []step `json:"steps"`
}

// step is one wait of a cycle, for a lock that the next step's party holds.
type step struct {
	Wait   party  `json:"wait"`
	Lock   string `json:"lock"`
	For    string `json:"for"`              // the party of the next step
	Behind bool   `json:"behind,omitempty"` // the next party is ahead in the queue
	Taken  int    `json:"takenStack,omitempty"`
}

// orphan is a lock with waiters whose holder has exited.
type orphan struct {
	Lock    string  `json:"lock"`
	Owner   string  `json:"owner"`
	Taken   int     `json:"takenStack,omitempty"`
	Waiters []party `json:"waiters"`
}

// lock is a lock of this process with a waiter or a known holder.
type lock struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Address string  `json:"address,omitempty"`
	Alert   string  `json:"alert,omitempty"` // "cycle" or "orphan"
	Holders []party `json:"holders"`
	Waiters []party `json:"waiters"` // in the order of the queue, if it is known, or else longest first

	names []string
	key   any  // in a set of package keyed or named, the name in a store, or nil
	queue bool // the order of Waiters is that of the queue
	knows bool // the lock knows its holders
}

// party is a goroutine or an explicit owner that holds a lock or waits for it.
type party struct {
	Owner     string   `json:"owner"`
	Goroutine int64    `json:"goroutine,omitempty"`
	State     string   `json:"state,omitempty"`
	Exited    bool     `json:"exited,omitempty"` // the goroutine
	Seconds   *float64 `json:"seconds,omitempty"`
	Holds     int      `json:"holds,omitempty"`
	Shared    bool     `json:"shared,omitempty"`
	Limited   bool     `json:"limited,omitempty"` // a context or a time limit can end the wait
	Store     bool     `json:"store,omitempty"`   // it waits in the store, and not in this process
	At        string   `json:"at,omitempty"`      // the function and the line
	Stack     int      `json:"stack,omitempty"`
	Taken     int      `json:"takenStack,omitempty"` // where the hold began

	owner locks.Owner
}

// lease is a hold that a store gave to this process.
type lease struct {
	Store      string   `json:"store"`
	Name       string   `json:"name"`
	State      string   `json:"state"` // "held", "lost", or "waiting"
	Cause      string   `json:"cause,omitempty"`
	Owner      *party   `json:"owner,omitempty"` // nil while the hold goes from one local owner to the next
	Seconds    *float64 `json:"seconds,omitempty"`
	Left       float64  `json:"leftSeconds"`
	TTL        float64  `json:"ttlSeconds"`
	Fixed      bool     `json:"fixed,omitempty"` // not renewed
	Renewed    *float64 `json:"renewedSecondsAgo,omitempty"`
	Unanswered int      `json:"unansweredRenewals,omitempty"`
	Token      uint64   `json:"token,omitempty"`
}

// description is the answer of a watched lock.
type description struct {
	Name    string      `json:"name"`
	Error   string      `json:"error,omitempty"`
	Held    bool        `json:"held"`
	Shared  bool        `json:"shared,omitempty"`
	Waiting int         `json:"waiting"` // -1 if it is unknown
	Holders []described `json:"holders"`
	Waiters []described `json:"waiters"`
}

// described is a party of a watched lock.
type described struct {
	Owner   string   `json:"owner,omitempty"`
	Label   string   `json:"label,omitempty"`
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
	Left    float64  `json:"leftSeconds,omitempty"`
	Token   uint64   `json:"token,omitempty"`
	Permits int64    `json:"permits,omitempty"` // of a semaphore
}

// history has the counts of a recorder under one name.
type history struct {
	Name     string  `json:"name"`
	Acquired uint64  `json:"acquired"`
	Failed   uint64  `json:"failed"` // with the acquisitions whose context ended
	Lost     uint64  `json:"lost"`
	Waited   float64 `json:"waitedSeconds"` // by all acquisitions together
	// Quantiles, in seconds, exact to a factor of two.
	WaitMedian float64 `json:"waitMedianSeconds"`
	Wait99     float64 `json:"wait99PercentSeconds"`
	Hold99     float64 `json:"hold99PercentSeconds"`
}

// historyOf returns the counts of o, with the holds and waits that have not ended: an operator
// looks because of the longest of them.
func historyOf(o observed, at time.Time) (all []history) {
	for _, s := range o.stats {
		for _, h := range o.holds {
			if h.Lock == s.Lock {
				add(&s.Holds, at.Sub(h.Since))
			}
		}
		for _, w := range o.waits {
			if w.Lock == s.Lock {
				add(&s.Waits, at.Sub(w.Since))
			}
		}
		all = append(all, history{
			Name: s.Lock, Acquired: s.Acquired, Failed: s.Failed + s.Cancelled, Lost: s.Lost,
			Waited: s.Waits.Sum.Seconds(), WaitMedian: s.Waits.Quantile(0.5).Seconds(),
			Wait99: s.Waits.Quantile(0.99).Seconds(), Hold99: s.Holds.Quantile(0.99).Seconds(),
		})
	}
	return all
}

// add counts a duration.
func add(h *record.Histogram, d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < record.Buckets-1 && d >= record.BucketUpperBound(i) {
		i++
	}
	h.Counts[i]++
	h.Sum += d
}

// maxGoroutines bounds the buffer for stacks, and the time for which an answer stops the program.
// Beyond it no stacks are taken.
const maxGoroutines = 50_000

// program and host are the names of the process and of its machine.
var (
	program = filepath.Base(os.Args[0])
	host, _ = os.Hostname()
)

// take returns a new snapshot.
func (h *handler) take(ctx context.Context, name string) *snapshot {
	s := &snapshot{
		Program: program, Host: host, PID: os.Getpid(), Go: runtime.Version(),
		Goroutines: runtime.NumGoroutine(), stacks: make(map[string]int),
		Cycles: []cycle{}, Orphans: []orphan{}, Locks: []*lock{}, Leases: []lease{},
		Watched: []description{}, Stacks: []string{}, History: []history{}, Filter: name,
	}
	s.Watched = append(s.Watched, h.inspect(ctx)...)
	cycles := waits.Cycles()

	// If a recorded wait began before the look at the queues, and still lasts after it, the look
	// has seen this wait of its owner.
	before := time.Now()
	waiting := waits.Waiting()
	suspects := waits.SuspectsOf(waiting)
	var recordedWaits, single []record.Wait
	var recordedHolds []record.Hold
	recorded := make([]observed, len(h.recorders))
	for i, r := range h.recorders {
		recorded[i].holds, recorded[i].waits = r.Holds(), r.Waits()
		recordedHolds = append(recordedHolds, recorded[i].holds...)
		recordedWaits = append(recordedWaits, recorded[i].waits...)
	}
	held := leases.All()
	s.At = time.Now()
	var orphans []waits.Orphan
	if len(cycles)+len(waiting)+len(recordedHolds)+len(recordedWaits)+len(held) > 0 {
		if s.NoStacks = s.Goroutines > maxGoroutines; !s.NoStacks {
			var stopped time.Duration
			s.all, stopped = stacks.All()
			s.Stopped = stopped.Seconds()
			lives := func(goroutine int64) bool { _, ok := s.all[goroutine]; return ok }
			orphans = waits.Orphans(suspects, lives)
		}
	}

	h.study(ctx, recorded)
	for _, o := range recorded {
		if o.failure != "" {
			s.Watched = append(s.Watched, noAnswer("a Recorder", o.failure))
		}
		s.History = append(s.History, historyOf(o, s.At)...)
		single = append(single, o.single...)
	}

	t := table{s: s, byKey: make(map[any]*lock), alias: make(map[uintptr]any)}
	t.name(waiting, single, held, before)
	t.addQueues(waiting)
	t.addRecorded(recordedHolds, recordedWaits)
	t.addLeases(held)
	for _, c := range cycles {
		s.Cycles = append(s.Cycles, t.cycle(c))
	}
	for _, o := range orphans {
		s.Orphans = append(s.Orphans, t.orphan(o))
	}
	t.finish()
	s.keep()
	return s
}

// observed is what a Recorder has seen.
type observed struct {
	holds []record.Hold
	waits []record.Wait
	studied
	failure string // why studied is empty, if it is
}

// studied is what methods of the recorded locks tell, which may be code of the program.
type studied struct {
	stats  []record.Stats // asks the holds of leased locks whether they are lost
	single []record.Wait  // the waits for locks that do not consist of several
}

// study adds what the methods of the recorded locks tell.
func (h *handler) study(ctx context.Context, recorded []observed) {
	var asked sync.WaitGroup
	for i, r := range h.recorders {
		o := &recorded[i]
		waits := o.waits
		asked.Go(func() {
			const what = "Err of a hold, or Unwrap of a lock,"
			o.studied, o.failure = answer(ctx, r.asking, what, func(context.Context) (s studied) {
				for _, w := range waits {
					if !isMulti(w.Of) {
						s.single = append(s.single, w)
					}
				}
				s.stats = r.Stats()
				return s
			})
		})
	}
	asked.Wait()
}

// inspect asks the watched locks.
func (h *handler) inspect(ctx context.Context) []description {
	all := make([]description, len(h.watched))
	var asked sync.WaitGroup
	for i, w := range h.watched {
		asked.Go(func() {
			d, failure := answer(ctx, w.asking, "Inspect", w.ask)
			if failure != "" {
				d = noAnswer(w.name, failure)
			}
			all[i] = d
		})
	}
	asked.Wait()
	return all
}

// answer returns what f returns, or why there is nothing. what names the code of the program that
// f calls. This code may panic, or never return, so f runs in a goroutine of its own. asking has a
// value until f has returned. Until then later answers do not call f again.
func answer[T any](ctx context.Context, asking chan struct{}, what string, f func(context.Context) T) (T, string) {
	type result struct {
		value   T
		failure string
	}
	fail := func(why string) (T, string) {
		var none T
		return none, why
	}
	select {
	case asking <- struct{}{}:
	default:
		return fail("no answer yet to an earlier request")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	results := make(chan result, 1)
	go func() {
		r := result{failure: what + " ended its goroutine"} // what is left after runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				r.failure = what + " panicked: " + textOf(keytext.Panic(p))
			}
			<-asking // before the result: the next request may follow it at once
			results <- r
		}()
		r.value = f(ctx)
		r.failure = ""
	}()
	select {
	case r := <-results:
		return r.value, r.failure
	case <-ctx.Done():
	}
	select { // an Inspect that heeds ctx returns now
	case r := <-results:
		return r.value, r.failure
	case <-time.After(answerGrace):
		return fail(fmt.Sprintf("no answer within %v", answerTimeout))
	}
}

func noAnswer(name, why string) description {
	return description{Name: name, Error: why, Waiting: -1, Holders: []described{}, Waiters: []described{}}
}

// textOf returns the text of an error of the program, whose Error may panic.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T", err)
		}
	}()
	return err.Error()
}

func (w watched) ask(ctx context.Context) description {
	info, err := w.lock.Inspect(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return noAnswer(w.name, fmt.Sprintf("no answer within %v", answerTimeout))
	case err != nil:
		return noAnswer(w.name, err.Error())
	}
	d := description{Name: w.name, Held: info.Held, Shared: info.Shared, Waiting: info.Waiting}
	now := time.Now()
	list := func(parties []locks.Party) []described {
		all := []described{}
		for _, p := range parties {
			one := described{Label: p.Label, Host: p.Host, PID: p.PID, Left: p.Left.Seconds(), Token: p.Token,
				Permits: p.Permits, Seconds: since(now, p.Since)}
			if p.Owner != 0 {
				one.Owner = p.Owner.String()
			}
			all = append(all, one)
		}
		return all
	}
	d.Holders, d.Waiters = list(info.Holders), list(info.Waiters)
	return d
}

// since returns how many seconds ago t was, or nil if t is zero.
func since(now, t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	s := max(now.Sub(t).Seconds(), 0)
	return &s
}

// table has the locks of a snapshot by their keys.
type table struct {
	s     *snapshot
	byKey map[any]*lock
	all   []*lock         // each once
	alias map[uintptr]any // the key of a recorded lock or a lease by the address of its queue
}

// name finds out which queue belongs to which recorded lock and which lease. No lock of recorded
// consists of several locks.
func (t *table) name(waiting []waits.Wait, recorded []record.Wait, held []leases.Lease, before time.Time) {
	for _, l := range held {
		t.alias[l.Queue] = keyOfLease(l)
	}
	queues := make(map[locks.Owner]uintptr)
	for _, w := range waiting {
		address := addressOf(w.Lock)
		if other, ok := queues[locks.Owner(w.Who)]; ok && other != address {
			address = 0 // an explicit owner that waits in several goroutines
		}
		queues[locks.Owner(w.Who)] = address
	}
	// Only the innermost of the owner's recorded locks can be the lock of the queue, and that lock
	// has one queue.
	innermost := make(map[locks.Owner]record.Wait)
	for _, w := range recorded {
		address := queues[w.Owner]
		if address == 0 || w.Calls != 1 || !w.Since.Before(before) {
			continue
		}
		if other, ok := innermost[w.Owner]; !ok || other.Since.Before(w.Since) {
			innermost[w.Owner] = w
		}
	}
	queueOf := make(map[any]uintptr)
	for _, w := range innermost {
		key, address := keyOf(w.Of, w.Lock), queues[w.Owner]
		if other, ok := queueOf[key]; ok && other != address {
			address = 0
		}
		queueOf[key] = address
	}
	for _, w := range innermost {
		key, address := keyOf(w.Of, w.Lock), queues[w.Owner]
		if queueOf[key] != address {
			continue
		}
		if lease, ok := t.alias[address].(leaseKey); ok { // a recorded lease is the lease
			t.lock(lease).addName(w.Lock)
			t.byKey[key] = t.lock(lease)
		} else {
			t.alias[address] = key
		}
	}
}

// maxWrappers bounds the wrappers around a lock: a lock may unwrap to itself for ever.
const maxWrappers = 100

// isMulti reports whether a lock consists of several locks, as the locks of [locks.Multi] do. A
// wrapper of the program counts as several locks if its Unwrap panics, or goes on for ever.
func isMulti(l locks.TryLocker) (several bool) {
	defer func() {
		if recover() != nil {
			several = true
		}
	}()
	for range maxWrappers {
		switch u := l.(type) {
		case interface{ Unwrap() []locks.TryLocker }:
			return true
		case interface{ Unwrap() locks.TryLocker }:
			l = u.Unwrap()
		default:
			return false
		}
	}
	return true
}

// leaseKey identifies a lock of a store among the locks of this process. Two clients may have the
// same store and the same name, and yet another server or another kind of lock.
type leaseKey struct {
	client      int
	store, name string
}

func keyOfLease(l leases.Lease) leaseKey { return leaseKey{l.Client, l.Store, l.Name} }

// addressOf returns the address of a queue, by which its lock is known.
func addressOf(queue *syncq.Sync) uintptr { return reflect.ValueOf(queue).Pointer() }

// keyOf returns the key of a recorded lock: its address, its value, or else its name.
func keyOf(l locks.TryLocker, name string) any {
	v := reflect.ValueOf(l)
	switch {
	case v.Kind() == reflect.Pointer:
		return v.Pointer()
	case v.Comparable():
		return l
	}
	return name
}

// lock returns the lock with a key.
func (t *table) lock(key any) *lock {
	if address, ok := key.(uintptr); ok {
		if other, ok := t.alias[address]; ok {
			key = other
		}
	}
	l := t.byKey[key]
	if l == nil {
		l = &lock{Holders: []party{}, Waiters: []party{}}
		if k, ok := key.(leaseKey); ok {
			l.Kind, l.key = k.store, k.name
		}
		t.byKey[key] = l
		t.all = append(t.all, l)
	}
	return l
}

func (l *lock) addName(name string) {
	if !slices.Contains(l.names, name) {
		l.names = append(l.names, name)
	}
}

// addQueues adds the locks that know their queues.
func (t *table) addQueues(waiting []waits.Wait) {
	for _, w := range waiting {
		address := addressOf(w.Lock)
		l := t.lock(address)
		if !l.queue {
			l.queue, l.knows, l.Address = true, true, fmt.Sprintf("%#x", address)
			if l.Kind == "" {
				l.Kind = "lock"
				if k := waits.Kind(w.Lock); k != nil {
					l.Kind = k.Name
					if k.Key != nil {
						l.key = k.Key
					}
				}
			}
			for _, h := range waits.Holders(w.Lock) {
				p := t.s.party(locks.Owner(h), 0)
				p.Taken = t.s.stack(stacks.Format(waits.TakenAt(w.Lock, h)))
				l.Holders = append(l.Holders, p)
			}
		}
		l.Waiters = append(l.Waiters, t.wait(w))
	}
}

// addRecorded adds the holds and waits of recorders.
func (t *table) addRecorded(holds []record.Hold, waits []record.Wait) {
	for _, h := range holds {
		l := t.lock(keyOf(h.Of, h.Lock))
		l.addName(h.Lock)
		l.setKind(h.Of)
		i := indexOf(l.Holders, h.Owner)
		if i < 0 {
			if l.knows {
				continue // it has released the lock since, or goes on from a downgrade
			}
			i = len(l.Holders)
			l.Holders = append(l.Holders, t.s.party(h.Owner, 0))
		}
		p := &l.Holders[i]
		p.Seconds, p.Holds, p.Shared = since(t.s.At, h.Since), h.Holds, h.Shared
	}
	for _, w := range waits {
		l := t.lock(keyOf(w.Of, w.Lock))
		l.addName(w.Lock)
		l.setKind(w.Of)
		if i := indexOf(l.Waiters, w.Owner); i >= 0 {
			if l.Waiters[i].Seconds == nil {
				l.Waiters[i].Seconds = since(t.s.At, w.Since)
			}
			continue
		}
		if l.queue || slices.ContainsFunc(l.Holders, func(p party) bool { return p.owner == w.Owner && !p.Shared }) {
			continue // it is about to enter the queue, or to return with the lock
		}
		p := t.s.party(w.Owner, 0)
		p.Seconds, p.Shared = since(t.s.At, w.Since), w.Shared
		l.Waiters = append(l.Waiters, p)
	}
}

// indexOf returns the index of the first of parties with an owner, or -1.
func indexOf(parties []party, owner locks.Owner) int {
	return slices.IndexFunc(parties, func(p party) bool { return p.owner == owner })
}

// setKind sets the kind of a recorded lock.
func (l *lock) setKind(of locks.TryLocker) {
	if l.Kind == "" {
		l.Kind = strings.TrimPrefix(fmt.Sprintf("%T", of), "*")
	}
}

// addLeases adds the leases, and to their locks the waits for the store.
func (t *table) addLeases(held []leases.Lease) {
	for _, l := range held {
		if !l.Held && !l.Lost && !l.Asks {
			continue
		}
		one := lease{
			Store: l.Store, Name: l.Name, State: "held", Cause: l.Cause, Left: l.Left.Seconds(), TTL: l.TTL.Seconds(),
			Fixed: l.Fixed, Renewed: since(t.s.At, l.Renewed), Unanswered: l.Unanswered, Token: l.Token,
			Seconds: since(t.s.At, l.Since),
		}
		if l.Owner != 0 {
			p := t.s.party(locks.Owner(l.Owner), 0)
			one.Owner = &p
		}
		switch {
		case l.Lost:
			one.State = "lost"
		case !l.Held:
			one.State, one.Seconds = "waiting", since(t.s.At, l.Asked)
			lock := t.lock(keyOfLease(l))
			if i := indexOf(lock.Holders, locks.Owner(l.Owner)); i >= 0 {
				// The owner holds the local queue, but not the lock of the store.
				lock.Holders = slices.Delete(lock.Holders, i, i+1)
			}
			if one.Owner != nil {
				p := *one.Owner
				p.Store, p.Seconds = true, one.Seconds
				lock.Waiters = slices.Insert(lock.Waiters, 0, p)
			}
		}
		t.s.Leases = append(t.s.Leases, one)
		if lock := t.byKey[keyOfLease(l)]; lock != nil && l.Held {
			if i := indexOf(lock.Holders, locks.Owner(l.Owner)); i >= 0 {
				lock.Holders[i].Seconds = one.Seconds
			}
		}
	}
	slices.SortStableFunc(t.s.Leases, func(a, b lease) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), cmp.Compare(b.Unanswered, a.Unanswered),
			cmp.Compare(a.Left, b.Left), cmp.Compare(a.Name, b.Name))
	})
}

// rank is the order of leases.
var rank = map[string]int{"lost": 0, "held": 1, "waiting": 2}

// cycle returns the row of a cycle.
func (t *table) cycle(links []waits.Link) cycle {
	var shown cycle
	var waiting deadlock.Cycle // what its Certain needs
	for i, link := range links {
		l := t.lock(addressOf(link.Lock))
		l.Alert = "cycle"
		next := links[(i+1)%len(links)].Who
		one := step{
			Wait: t.wait(link.Wait), Lock: l.title(link.Lock), For: locks.Owner(next).String(), Behind: link.Behind,
		}
		if !link.Behind {
			one.Taken = t.s.stack(stacks.Format(waits.TakenAt(link.Lock, next)))
		}
		waiting = append(waiting, deadlock.Wait{Limited: link.Limited, Behind: link.Behind, For: locks.Owner(next)})
		shown.Steps = append(shown.Steps, one)
	}
	shown.Certain = waiting.Certain()
	return shown
}

// orphan returns the row of o.
func (t *table) orphan(o waits.Orphan) orphan {
	l := t.lock(addressOf(o.Lock))
	l.Alert = cmp.Or(l.Alert, "orphan")
	shown := orphan{
		Lock: l.title(o.Lock), Owner: locks.Owner(o.Holder).String(),
		Taken: t.s.stack(stacks.Format(waits.TakenAt(o.Lock, o.Holder))),
	}
	for _, w := range o.Waits {
		waiter := t.wait(w)
		waiter.Exited = false // it waits since the goroutines were listed
		shown.Waiters = append(shown.Waiters, waiter)
	}
	return shown
}

// wait returns w as a party.
func (t *table) wait(w waits.Wait) party {
	p := t.s.party(locks.Owner(w.Who), w.Goroutine)
	p.Shared, p.Limited, p.Seconds = w.Shared, w.Limited, since(t.s.At, w.Since)
	return p
}

// text returns the names of a lock with its key, or "" if it has neither.
func (l *lock) text() string {
	names := strings.Join(l.names, ", ")
	text, ok := l.key.(string)
	switch {
	case l.key == nil || ok && slices.Contains(l.names, text):
		return names
	case ok && names == "":
		return text
	}
	return strings.TrimPrefix(names+" "+keytext.Of(l.key), " ")
}

// title returns the name of a lock or, without a name, deadlock's description.
func (l *lock) title(s *syncq.Sync) string {
	if name := l.text(); name != "" {
		return name
	}
	d := deadlock.Lock{Type: "lock", Address: addressOf(s)}
	if k := waits.Kind(s); k != nil {
		d.Type, d.Key = k.Name, k.Key
	}
	return d.String()
}

// finish sorts the locks, the most urgent first.
func (t *table) finish() {
	for _, l := range t.all {
		if len(l.Holders)+len(l.Waiters) == 0 {
			continue
		}
		slices.Sort(l.names)
		l.Name = cmp.Or(l.text(), l.Kind)
		if !l.queue {
			slices.SortStableFunc(l.Waiters, func(a, b party) int { return cmp.Compare(b.seconds(), a.seconds()) })
		}
		slices.SortStableFunc(l.Holders, func(a, b party) int { return cmp.Compare(b.seconds(), a.seconds()) })
		t.s.Locks = append(t.s.Locks, l)
	}
	urgency := map[string]int{"cycle": 0, "orphan": 1, "": 2}
	slices.SortFunc(t.s.Locks, func(a, b *lock) int {
		return cmp.Or(
			cmp.Compare(urgency[a.Alert], urgency[b.Alert]),
			cmp.Compare(min(len(b.Waiters), 1), min(len(a.Waiters), 1)),
			cmp.Compare(longest(b.Waiters), longest(a.Waiters)),
			cmp.Compare(longest(b.Holders), longest(a.Holders)),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address),
		)
	})
}

func (p party) seconds() float64 {
	if p.Seconds == nil {
		return 0
	}
	return *p.Seconds
}

// longest returns the longest time of parties, in seconds, or 0 if no time is known.
func longest(parties []party) (s float64) {
	for _, p := range parties {
		s = max(s, p.seconds())
	}
	return s
}

// party describes an owner. If goroutine is not 0, the owner acts in it.
func (s *snapshot) party(o locks.Owner, goroutine int64) party {
	if goroutine == 0 && o > 0 {
		goroutine = int64(o)
	}
	p := party{Owner: o.String(), Goroutine: goroutine, owner: o}
	if g, lives := s.all[goroutine]; lives {
		frames := stacks.Program(g.Frames)
		p.State, p.Stack, p.At = g.State, s.stack(frames), at(frames)
		if g.WaitsInLibrary() {
			reason, time, _ := strings.Cut(g.State, ",")
			if !slices.Contains(active, reason) {
				p.State = strings.TrimPrefix(time, " ") // the runtime says it from a minute on
			}
		}
	} else if goroutine != 0 && s.all != nil {
		p.Exited = true
	}
	return p
}

// active are the states of goroutines that do not wait.
var active = []string{"running", "runnable", "syscall"}

// stack returns the number of a stack. Stacks that differ in the values of arguments only have
// the same number.
func (s *snapshot) stack(frames string) int {
	if frames == "" {
		return 0
	}
	frames = plain(frames)
	n, ok := s.stacks[frames]
	if !ok {
		s.Stacks = append(s.Stacks, frames)
		n = len(s.Stacks)
		s.stacks[frames] = n
	}
	return n
}

// plain returns frames without the values of arguments, and without offsets.
func plain(frames string) string {
	var b strings.Builder
	for line := range strings.Lines(frames) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"):
			line, _, _ = strings.Cut(line, " +0x")
		case strings.HasPrefix(line, "created by "):
			line, _, _ = strings.Cut(line, " in goroutine ")
		case strings.HasSuffix(line, ")"):
			if open := strings.LastIndexByte(line, '('); open > 0 {
				line = line[:open] + "()"
			}
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// at returns the first function of the program in a stack, with its file and line.
func at(frames string) string {
	lines := strings.Split(frames, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		function := lines[i]
		if open := strings.LastIndexByte(function, '('); open > 0 {
			function = function[:open]
		}
		if stacks.IsLibrary(function) {
			continue
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		function = function[strings.LastIndexByte(function, '/')+1:]
		return fmt.Sprintf("%s %s", function, filepath.Base(place))
	}
	return ""
}

// json writes s as JSON.
func (s *snapshot) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(s)
}
