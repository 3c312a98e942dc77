package missingunlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/rwlock"
)

var errFull = errors.New("full")

type queue struct {
	mu   sync.Mutex
	rw   sync.RWMutex
	fair fair.Mutex
	own  rwlock.RWMutex
	n    int
}

func (q *queue) early() error {
	q.mu.Lock()
	if q.n > 9 {
		return errFull // want `return without Unlock of q.mu`
	}
	q.n++
	q.mu.Unlock()
	return nil
}

func (q *queue) reader() int {
	q.rw.RLock()
	if q.n > 9 {
		return 9 // want `return without RUnlock of q.rw`
	}
	defer q.rw.RUnlock()
	return q.n
}

func (q *queue) end(x bool) {
	q.fair.Lock()
	if x {
		q.fair.Unlock()
		return
	}
	q.n++
} // want `return without Unlock of q.fair`

func (q *queue) context(ctx context.Context) error {
	if err := q.own.LockContext(ctx); err != nil {
		return err
	}
	if q.n > 9 {
		return errFull // want `return without Unlock of q.own`
	}
	q.n++
	return q.own.UnlockContext(ctx)
}

func (q *queue) try() error {
	if !q.own.TryLockFor(time.Second) || q.n < 0 {
		return errFull
	}
	if q.n > 9 {
		return errFull // want `return without Unlock of q.own`
	}
	q.own.Unlock()
	return nil
}

func (q *queue) tried(ctx context.Context) error {
	ok, err := q.own.TryRLockContext(ctx)
	if err != nil || !ok {
		return err
	}
	if q.n > 9 {
		return errFull // want `return without RUnlock of q.own`
	}
	return q.own.RUnlockContext(ctx)
}

func view(ctx context.Context, rw *rwlock.RWMutex) error {
	if err := rw.ReadLocker().LockContext(ctx); err != nil {
		return err
	}
	if rw.HasQueued() {
		return errFull // want `return without RUnlock of rw`
	}
	rw.RUnlock()
	return nil
}

func loop(l locks.Locker, ctx context.Context, jobs []int) {
	for _, job := range jobs {
		err := l.LockContext(ctx)
		if err != nil {
			continue
		}
		if job == 0 {
			return // want `return without Unlock of l`
		}
		_ = l.UnlockContext(ctx)
	}
}

func literal(mu sync.Locker) func(int) int {
	return func(n int) int {
		mu.Lock()
		switch {
		case n > 9:
			return 9 // want `return without Unlock of mu`
		}
		mu.Unlock()
		return n
	}
}

// What follows is right.

func (q *queue) conditional(lock bool) {
	if lock {
		q.mu.Lock()
	}
	q.n++
	if lock {
		q.mu.Unlock()
	}
}

func (q *queue) deferred() (err error) {
	q.mu.Lock()
	defer func() {
		q.n++
		q.mu.Unlock()
	}()
	if q.n > 9 {
		return errFull
	}
	return nil
}

func (q *queue) deferredSometimes(keep bool) error {
	q.mu.Lock()
	defer func() {
		if !keep {
			q.mu.Unlock()
		}
	}()
	if q.n > 9 {
		return errFull
	}
	return nil
}

func (q *queue) panics() {
	q.mu.Lock()
	if q.n > 9 {
		panic("full")
	}
	q.mu.Unlock()
}

// get returns with the lock held if the queue is full.
func (q *queue) get() bool {
	q.mu.Lock()
	if q.n > 9 {
		return true
	}
	q.mu.Unlock()
	return false
}

type gate struct {
	mu sync.Mutex
	n  int
}

func (g *gate) acquire() bool {
	g.mu.Lock()
	if g.n > 9 {
		return true
	}
	g.mu.Unlock()
	return false
}

func (g *gate) leave() { g.mu.Unlock() }

type list struct {
	mu   sync.Mutex
	next *list
	n    int
}

func handOverHand(q *list) *list {
	q.mu.Lock()
	for {
		n := q.next
		if n == nil {
			q.mu.Unlock()
			return nil
		}
		n.mu.Lock()
		q.mu.Unlock()
		q = n
		if q.n > 9 {
			return q
		}
	}
}

func passedOn(q *queue, done func(func())) error {
	mu := new(sync.Mutex)
	mu.Lock()
	if q.n > 9 {
		done(mu.Unlock)
		return nil
	}
	mu.Unlock()
	return nil
}

func byLiteral(q *queue) error {
	var mu sync.Mutex
	unlock := func() { mu.Unlock() }
	mu.Lock()
	if q.n > 9 {
		unlock()
		return errFull
	}
	mu.Unlock()
	return nil
}

func unknownOutcome(ctx context.Context, l locks.TryLocker, must func(error)) {
	err := l.LockContext(ctx)
	must(err)
	if ctx.Err() != nil {
		return
	}
	_ = l.UnlockContext(ctx)
}

type handed struct {
	mu sync.Mutex
	n  int
}

func (h *handed) first() bool {
	h.mu.Lock()
	if h.n > 9 {
		h.second()
		return false
	}
	h.mu.Unlock()
	return true
}

func (h *handed) second() { h.mu.Unlock() }

type chain struct {
	mu sync.Mutex
	n  int
}

// The lock of these is not in their names.

func (c *chain) AddBlock(n int) error {
	c.mu.Lock()
	if n < c.n {
		return errFull // want `return without Unlock of c.mu`
	}
	c.n = n
	c.mu.Unlock()
	return nil
}

func (c *chain) belowThreshold(clock int) bool {
	c.mu.Lock()
	if clock < c.n {
		return true // want `return without Unlock of c.mu`
	}
	c.mu.Unlock()
	return false
}

func (c *chain) continues(blocks []int) {
	for _, n := range blocks {
		c.mu.Lock()
		if n < c.n {
			continue // want `continue without Unlock of c.mu`
		}
		c.n = n
		c.mu.Unlock()
	}
}

func (c *chain) breaks(blocks []int) {
	for _, n := range blocks {
		c.mu.Lock()
		if n < c.n {
			break // want `break without Unlock of c.mu`
		}
		c.n = n
		c.mu.Unlock()
	}
}

func (c *chain) joins(n int) {
	c.mu.Lock()
	if n < c.n {
		n++ // want `from here on, no Unlock of c.mu`
	} else {
		c.mu.Unlock()
	}
}

type half struct {
	mu sync.Mutex
	n  int
}

// acquireUnless returns with the lock, but not with an error.
func (h *half) acquireUnless(n int) error {
	h.mu.Lock()
	if n < h.n {
		return errFull // want `return without Unlock of h.mu`
	}
	if n > h.n+9 {
		h.mu.Unlock()
		return errFull
	}
	return nil
}

func (h *half) doneWith() { h.mu.Unlock() }

type other struct {
	mu sync.Mutex
	n  int
}

// What follows is right.

func (c *other) getLocked() bool {
	c.mu.Lock()
	if c.n > 9 {
		return true
	}
	c.mu.Unlock()
	return false
}

func (c *other) RLock_() bool { return c.getLocked() }

func (c *other) Done() { c.mu.Unlock() }

func (c *other) reacquires(jobs []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range jobs {
		if job == nil {
			continue
		}
		c.mu.Unlock()
		job()
		c.mu.Lock()
	}
}

func (c *other) sameCondition(keep bool) {
	c.mu.Lock()
	if keep {
		c.n++
	} else {
		c.mu.Unlock()
	}
	if keep {
		c.mu.Unlock()
	}
}

func eachOther(all []*other) {
	for _, o := range all {
		o.mu.Lock()
		if o.n > 9 {
			keep(o)
			continue
		}
		o.mu.Unlock()
	}
}

func eachNew(next func() *other) {
	for {
		o := next()
		o.mu.Lock()
		if o.n > 9 {
			keep(o)
			continue
		}
		o.mu.Unlock()
	}
}

func keep(*other) {}

// The comments of these speak of the lock, but do not say that it stays held.

type ring struct {
	mu sync.Mutex
	n  int
}

// push wakes the reader outside of the mutex, since holding it would stop all others. The caller
// must not hold the lock.
func (r *ring) push(n int) error {
	r.mu.Lock()
	if n < r.n {
		return errFull // want `return without Unlock of r.mu`
	}
	r.n = n
	r.mu.Unlock()
	return nil
}

// pushAll pushes under a single lock, for callers that already hold several numbers, to be returned
// with the next one.
func (r *ring) pushAll(n int) error {
	r.mu.Lock()
	if n < r.n {
		return errFull // want `return without Unlock of r.mu`
	}
	r.mu.Unlock()
	return nil
}

// peek returns with the mutex held if the ring is empty.
func (r *ring) peek() int {
	r.mu.Lock()
	if r.n > 0 {
		r.mu.Unlock()
	}
	if r.n == 0 {
		return 0
	}
	return r.n
}

// first returns the first one. The caller has to unlock r.mu if it is zero.
func (r *ring) first() int {
	r.mu.Lock()
	if r.n == 0 {
		return 0
	}
	r.mu.Unlock()
	return r.n
}

// A function that releases the lock nowhere, where others release what they acquire.

type table struct {
	mu   sync.RWMutex
	rows map[string]int
}

func (t *table) get(name string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows[name]
}

func (t *table) count() int {
	t.mu.RLock()
	return len(t.rows) // want `return without RUnlock of t.mu`
}

func (t *table) put(name string, n int) bool {
	if name == "" {
		return false
	}
	t.mu.Lock()
	if n < 0 {
		return false // want `return without Unlock of t.mu`
	}
	t.rows[name] = n
	return true
}

func (t *table) watch(names chan string) {
	go func() {
		for name := range names {
			t.mu.Lock()
			delete(t.rows, name) // want `from here on, no Unlock of t.mu`
		}
	}()
}

// What follows is right: newTable hands over a table that others cannot see yet, and the comment in
// close says that it keeps the lock.

func (t *table) close() {
	t.mu.Lock() // held for ever: no call comes after it
	t.rows = nil
}

func newTable() *table {
	t := &table{rows: map[string]int{}}
	t.mu.Lock()
	return t
}

// An error whose variable was looked at excuses no lock, even if another function releases the lock.

type session struct {
	mu   sync.Mutex
	open bool
}

func (s *session) Start(check func() error) error {
	s.mu.Lock()
	err := check()
	if err != nil {
		return err // want `return without Unlock of s.mu`
	}
	if s.open {
		s.mu.Unlock()
		return nil
	}
	return nil
}

func (s *session) Stop() { s.mu.Unlock() }

// The lock of these stays held until another function releases it.

type turnstile struct {
	mu   sync.Mutex
	busy bool
}

func (t *turnstile) push() {
	t.mu.Lock()
	t.busy = true
}

func (t *turnstile) pass() {
	t.busy = false
	t.mu.Unlock()
}

func (t *turnstile) both() {
	t.mu.Lock()
	t.mu.Unlock()
}

// A pair of literals acquires and releases the lock.

type entries struct {
	mu sync.Mutex
	n  int
}

func (e *entries) add() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
}

func (e *entries) addIf(alone bool) {
	lock := func() {
		if alone {
			e.mu.Lock()
		}
	}
	unlock := func() {
		if alone {
			e.mu.Unlock()
		}
	}
	lock()
	e.n++
	unlock()
}

// A word like hold in the name is no excuse if no function releases the lock.

type line struct {
	mu    sync.Mutex
	holds []int
	next  int
}

func (l *line) hold(n int) int {
	l.mu.Lock()
	l.next++
	l.holds = append(l.holds, n)
	return l.next // want "return without Unlock of l.mu"
}

func (l *line) enterOne() func() {
	l.mu.Lock()
	l.next++
	return func() { // want "return without Unlock of l.mu"
		l.mu.Lock()
		l.next--
		l.mu.Unlock()
	}
}

func (l *line) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds)
}

// The variable of a round is gone with the round.

type stripe struct {
	mu sync.Mutex
	n  int
}

type stripes [8]stripe

func (all *stripes) sum() (n int) {
	for i := range all {
		s := &all[i]
		s.mu.Lock()
		n += s.n // want "from here on, no Unlock of s.mu"
	}
	return n
}

func (all *stripes) reset() {
	for i := range all {
		s := &all[i]
		s.mu.Lock()
		s.n = 0
		s.mu.Unlock()
	}
}

// These are all acquired, and then all released.

type shards [8]struct {
	mu sync.Mutex
	n  int
}

func (all *shards) stop() {
	for i := range all {
		s := &all[i]
		s.mu.Lock()
		s.n++
	}
}

func (all *shards) start() {
	for i := range all {
		all[i].mu.Unlock()
	}
}

func (all *shards) reset() {
	for i := range all {
		s := &all[i]
		s.mu.Lock()
		s.n = 0
		s.mu.Unlock()
	}
}

type lanes [8]stripe2

type stripe2 struct {
	mu sync.Mutex
	n  int
}

func (all *lanes) sum() (n int) {
	for i := range all {
		s := &all[i]
		s.mu.Lock()
		n += s.n
	}
	for i := range all {
		s := &all[i]
		s.mu.Unlock()
	}
	return n
}

// A lock that one function has, and nothing releases.

func collects(each func(func(int))) (all []int) {
	var mu sync.Mutex
	each(func(n int) {
		mu.Lock()
		all = append(all, n)
	}) // want "without Unlock of mu"
	return all
}

func waitsForever() {
	var mu sync.Mutex
	mu.Lock()
	mu.Lock()
}

func condition() {
	var mu sync.Mutex
	c := sync.NewCond(&mu)
	mu.Lock()
	c.Wait()
	c.L.Unlock()
}

// The caller has no name for the object with the lock.

type cache struct {
	mu sync.RWMutex
	m  map[string]int
}

type caches []*cache

func (all caches) of(key string) *cache { return all[len(key)%len(all)] }

func (all caches) get(key string) (int, bool) { return all.of(key).get(key) }

func (c *cache) get(key string) (int, bool) {
	c.mu.RLock()
	n, ok := c.m[key]
	if !ok {
		return 0, false // want "return without RUnlock of c.mu"
	}
	c.mu.RUnlock()
	return n, true
}
