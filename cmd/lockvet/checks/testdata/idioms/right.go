package idioms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

var errBusy = errors.New("busy")

// A bool decides, twice.
type r1 struct {
	mu sync.Mutex
	n  int
}

func (s *r1) do(lock bool) {
	if lock {
		s.mu.Lock()
	}
	s.n++
	if lock {
		s.mu.Unlock()
	}
}

func (s *r1) deferred(lock bool) int {
	if lock {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return s.n
}

func (s *r1) use() {
	s.mu.Lock()
	s.do(false)
	s.mu.Unlock()
	s.do(true)
}

// Lock returns its unlock.
type r2 struct {
	mu sync.RWMutex
	n  int
}

func (s *r2) lock() func() { s.mu.Lock(); return s.mu.Unlock }

func (s *r2) rlock() (unlock func()) {
	s.mu.RLock()
	return func() { s.mu.RUnlock() }
}

func (s *r2) set(n int) {
	defer s.lock()()
	s.n = n
}

func (s *r2) get() int {
	unlock := s.rlock()
	defer unlock()
	return s.n
}

func (s *r2) getThenSet() {
	unlock := s.rlock()
	n := s.n
	unlock()
	unlock = s.lock()
	defer unlock()
	s.n = n + 1
}

// Embedded, promoted twice.
type base3 struct{ sync.Mutex }
type r3 struct {
	base3
	m map[string]int
}

func (s *r3) inc(k string) {
	s.Lock()
	defer s.Unlock()
	s.incLocked(k)
}

func (s *r3) incLocked(k string) { s.m[k]++ }

func (s *r3) both(o *r3) {
	s.Lock()
	v := s.m["a"]
	s.Unlock()
	o.Lock()
	o.m["a"] = v
	o.Unlock()
}

// Generics.
type r4[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V
}

func (s *r4[K, V]) get(k K) (V, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.m[k]
	return v, ok
}

func (s *r4[K, V]) getOrSet(k K, mk func() V) V {
	if v, ok := s.get(k); ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.m[k]; ok {
		return v
	}
	v := mk()
	s.m[k] = v
	return v
}

func (s *r4[K, V]) clone() *r4[K, V] {
	c := &r4[K, V]{m: map[K]V{}}
	s.mu.RLock()
	defer s.mu.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, v := range s.m {
		c.m[k] = v
	}
	return c
}

// Method values.
type r5 struct {
	mu sync.Mutex
	n  int
}

func (s *r5) f() {
	lock, unlock := s.mu.Lock, s.mu.Unlock
	lock()
	defer unlock()
	s.n++
}

func run(fs ...func()) {
	for _, f := range fs {
		f()
	}
}

func (s *r5) g() { run(s.mu.Lock, s.h, s.mu.Unlock) }
func (s *r5) h() { s.n++ }

// TryLock in many shapes.
type r6 struct {
	mu sync.Mutex
	n  int
}

func (s *r6) spin() {
	for !s.mu.TryLock() {
		runtime.Gosched()
	}
	defer s.mu.Unlock()
	s.n++
}

func (s *r6) once() error {
	if !s.mu.TryLock() {
		return errBusy
	}
	defer s.mu.Unlock()
	s.n++
	return nil
}

func (s *r6) sw() int {
	switch {
	case s.mu.TryLock():
		defer s.mu.Unlock()
		return s.n
	default:
		return -1
	}
}

func (s *r6) tries(n int) bool {
	locked := false
	for range n {
		if locked = s.mu.TryLock(); locked {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !locked {
		return false
	}
	s.n++
	s.mu.Unlock()
	return true
}

func (s *r6) either(other *r6) {
	for {
		s.mu.Lock()
		if other.mu.TryLock() {
			break
		}
		s.mu.Unlock()
		other.mu.Lock()
		if s.mu.TryLock() {
			break
		}
		other.mu.Unlock()
	}
	s.n, other.n = other.n, s.n
	s.mu.Unlock()
	other.mu.Unlock()
}

func (s *r6) elseLock() {
	if !s.mu.TryLock() {
		log.Print("waits")
		s.mu.Lock()
	}
	s.n++
	s.mu.Unlock()
}

// From reading to writing.
type r7 struct {
	mu sync.RWMutex
	m  map[string]int
}

func (s *r7) get(k string) int {
	s.mu.RLock()
	if v, ok := s.m[k]; ok {
		s.mu.RUnlock()
		return v
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.m[k]; ok {
		return v
	}
	s.m[k] = len(k)
	return s.m[k]
}

func (s *r7) update(k string) {
	s.mu.RLock()
	unlock := s.mu.RUnlock
	if s.m[k] == 0 {
		s.mu.RUnlock()
		s.mu.Lock()
		unlock = s.mu.Unlock
		s.m[k] = 1
	}
	defer unlock()
	fmt.Println(s.m[k])
}

// A lock that a goroutine releases.
type r8 struct {
	mu sync.Mutex
	n  int
}

func (s *r8) start() error {
	s.mu.Lock()
	if s.n > 0 {
		s.mu.Unlock()
		return errBusy
	}
	go func() {
		defer s.mu.Unlock()
		time.Sleep(time.Second)
	}()
	return nil
}

func (s *r8) start2() {
	s.mu.Lock()
	go s.finish()
}

func (s *r8) finish() { s.n = 0; s.mu.Unlock() }

func (s *r8) after() {
	s.mu.Lock()
	time.AfterFunc(time.Second, s.finish)
}

// Conditions.
type r9 struct {
	mu       sync.Mutex
	notEmpty *sync.Cond
	q        []int
	closed   bool
}

func new9() *r9 {
	s := &r9{}
	s.notEmpty = sync.NewCond(&s.mu)
	return s
}

func (s *r9) pop() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.q) == 0 && !s.closed {
		s.notEmpty.Wait()
	}
	if len(s.q) == 0 {
		return 0, false
	}
	v := s.q[0]
	s.q = s.q[1:]
	return v, true
}

func (s *r9) push(v int) {
	s.notEmpty.L.Lock()
	s.q = append(s.q, v)
	s.notEmpty.L.Unlock()
	s.notEmpty.Signal()
}

func (s *r9) forever() {
	s.mu.Lock()
	for {
		if s.closed {
			s.mu.Unlock()
			return
		}
		if len(s.q) > 0 {
			s.q = nil
			continue
		}
		s.notEmpty.Wait()
	}
}

func (s *r9) popContext(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notEmpty.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.q) == 0 {
		s.notEmpty.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	s.q = s.q[1:]
	return nil
}

// Errgroup and WaitGroup.Go.
type r10 struct {
	mu  sync.Mutex
	all []int
}

func (s *r10) gather(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range 4 {
		g.Go(func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.all = append(s.all, i)
			return nil
		})
	}
	return g.Wait()
}

func (s *r10) sum(parts [][]int) (total int) {
	var wg sync.WaitGroup
	var sum atomic.Int64
	s.mu.Lock()
	for _, p := range parts {
		wg.Go(func() {
			for _, v := range p {
				sum.Add(int64(v))
			}
		})
	}
	wg.Wait()
	s.all = append(s.all, int(sum.Load()))
	s.mu.Unlock()
	return int(sum.Load())
}

func (s *r10) localLock(parts [][]int) (total int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			total += len(p)
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	return total
}

func (s *r10) unlocked() {
	var wg sync.WaitGroup
	s.mu.Lock()
	wg.Go(func() {
		s.mu.Lock()
		s.all = nil
		s.mu.Unlock()
	})
	s.mu.Unlock()
	wg.Wait()
}

// Recover.
type r11 struct {
	mu sync.Mutex
	n  int
}

func (s *r11) safe(f func()) (err error) {
	s.mu.Lock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
		s.mu.Unlock()
	}()
	f()
	return nil
}

func (s *r11) repanic(f func()) {
	s.mu.Lock()
	defer func() {
		if r := recover(); r != nil {
			s.mu.Unlock()
			panic(r)
		}
	}()
	f()
	s.mu.Unlock()
}

// A flag says that it is locked.
type r12 struct {
	mu sync.Mutex
	n  int
}

func (s *r12) f(slow func() error) error {
	s.mu.Lock()
	locked := true
	defer func() {
		if locked {
			s.mu.Unlock()
		}
	}()
	if s.n > 3 {
		return errBusy
	}
	s.mu.Unlock()
	locked = false
	return slow()
}

func (s *r12) around(cb func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n > 0 {
		func() {
			s.mu.Unlock()
			defer s.mu.Lock()
			cb()
		}()
		s.n--
	}
}

// Labels.
type r13 struct {
	mu sync.Mutex
	n  int
}

func (s *r13) f(in [][]int) int {
	total := 0
outer:
	for _, row := range in {
		s.mu.Lock()
		for _, v := range row {
			switch {
			case v < 0:
				s.mu.Unlock()
				continue outer
			case v == 99:
				s.mu.Unlock()
				break outer
			}
			total += v
		}
		s.mu.Unlock()
	}
	return total
}

func (s *r13) retry() {
again:
	s.mu.Lock()
	if s.n > 0 {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		goto again
	}
	s.n++
	s.mu.Unlock()
}

func (s *r13) toEnd(a, b bool) (err error) {
	s.mu.Lock()
	if a {
		err = errBusy
		goto end
	}
	if b {
		goto end
	}
	s.n++
end:
	s.mu.Unlock()
	return err
}

// Select between unlock and lock.
type r14 struct {
	mu    sync.Mutex
	ready bool
	ch    chan struct{}
}

func (s *r14) wait(ctx context.Context) error {
	s.mu.Lock()
	for !s.ready {
		ch := s.ch
		s.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
	}
	s.ready = false
	s.mu.Unlock()
	return nil
}

func (s *r14) set() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	close(s.ch)
	s.ch = make(chan struct{})
}

func (s *r14) loop(stop <-chan struct{}, tick <-chan time.Time) {
	for {
		select {
		case <-stop:
			return
		case <-tick:
			s.mu.Lock()
			if s.ready {
				s.mu.Unlock()
				break
			}
			s.ready = true
			s.mu.Unlock()
		}
	}
}

// Shards.
type r16 struct {
	shards [8]struct {
		mu sync.Mutex
		n  int
	}
}

func (s *r16) total() (n int) {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		defer s.shards[i].mu.Unlock()
	}
	for i := range s.shards {
		n += s.shards[i].n
	}
	return n
}

func (s *r16) each() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.n++
		sh.mu.Unlock()
	}
}

// Two objects in order.
type r17 struct {
	mu sync.Mutex
	id int
	n  int
}

func transfer17(from, to *r17, n int) {
	if from.id < to.id {
		from.mu.Lock()
		defer from.mu.Unlock()
		to.mu.Lock()
		defer to.mu.Unlock()
	} else {
		to.mu.Lock()
		defer to.mu.Unlock()
		from.mu.Lock()
		defer from.mu.Unlock()
	}
	from.n -= n
	to.n += n
}

func swap17(a, b *r17) {
	first, second := a, b
	if first.id > second.id {
		first, second = second, first
	}
	first.mu.Lock()
	second.mu.Lock()
	a.n, b.n = b.n, a.n
	a.mu.Unlock()
	b.mu.Unlock()
}

func all17(all []*r17) {
	slices.SortFunc(all, func(a, b *r17) int { return cmp.Compare(a.id, b.id) })
	for _, a := range all {
		a.mu.Lock()
	}
	for _, a := range slices.Backward(all) {
		a.mu.Unlock()
	}
}

// Hand over hand.
type r18 struct {
	mu   sync.Mutex
	v    int
	next *r18
}

func (s *r18) insert(v int) {
	s.mu.Lock()
	cur := s
	for cur.next != nil && cur.next.v < v {
		next := cur.next
		next.mu.Lock()
		cur.mu.Unlock()
		cur = next
	}
	cur.next = &r18{v: v, next: cur.next}
	cur.mu.Unlock()
}

func (s *r18) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		return 1
	}
	return 1 + s.next.len()
}

// Locks as parameters.
type r22 struct {
	mu    sync.Mutex
	other sync.RWMutex
	n     int
}

func with(l sync.Locker, f func()) {
	l.Lock()
	defer l.Unlock()
	f()
}

func lockAll(ls ...sync.Locker) {
	for _, l := range ls {
		l.Lock()
	}
}

func lockIt(mu *sync.Mutex)   { mu.Lock() }
func unlockIt(mu *sync.Mutex) { mu.Unlock() }

func (s *r22) f() {
	with(&s.mu, func() { s.n++ })
	with(&s.mu, func() { with(s.other.RLocker(), func() { s.n-- }) })
	with(&s.other, func() { s.n++ })
}

func (s *r22) g() int {
	lockIt(&s.mu)
	defer unlockIt(&s.mu)
	return s.n
}

func (s *r22) h() {
	lockAll(&s.mu, &s.other)
	defer s.mu.Unlock()
	defer s.other.Unlock()
	s.n = 0
}

func pause(mu *sync.Mutex, d time.Duration) {
	mu.Unlock()
	defer mu.Lock()
	time.Sleep(d)
}

func (s *r22) i() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n > 0 {
		pause(&s.mu, time.Second)
	}
}

func lockBoth(a, b *sync.Mutex) (unlock func()) {
	a.Lock()
	b.Lock()
	return func() {
		b.Unlock()
		a.Unlock()
	}
}

type r22b struct{ a, b sync.Mutex }

func (s *r22b) f() {
	defer lockBoth(&s.a, &s.b)()
}

func (s *r22b) g() {
	unlock := lockBoth(&s.b, &s.b)
	unlock()
}

type r22e struct {
	mu, other sync.Mutex
	cond      *sync.Cond
	n         int
}

func swap(held, other *sync.Mutex) {
	held.Unlock()
	other.Lock()
	other.Unlock()
	held.Lock()
}

func (s *r22e) f() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g()
}

func (s *r22e) g() { swap(&s.mu, &s.other) }

func (s *r22e) h() {
	s.other.Lock()
	defer s.other.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
}

func condOf(mu *sync.Mutex) *sync.Cond { return sync.NewCond(mu) }

type r22f struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
}

func new22f() *r22f {
	s := &r22f{}
	s.cond = condOf(&s.mu)
	return s
}

func (s *r22f) f(x bool) {
	s.cond.L.Lock()
	if x {
		s.mu.Unlock()
		return
	}
	s.n++
	s.cond.L.Unlock()
}

func tryFor(mu *sync.Mutex, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if mu.TryLock() {
			return true
		}
	}
	return false
}

func (s *r22b) h() bool {
	if !tryFor(&s.a, time.Second) {
		return false
	}
	defer s.a.Unlock()
	return true
}

func background(mu *sync.Mutex, f func()) {
	mu.Lock()
	go func() {
		defer mu.Unlock()
		f()
	}()
}

type r22c struct{ mu sync.Mutex }

func (s *r22c) f() { background(&s.mu, func() {}) }
func (s *r22c) g() {
	s.mu.Lock()
	s.mu.Unlock()
	s.f()
	s.mu.Lock()
	defer s.mu.Unlock()
}

type holder struct{ mu *sync.Mutex }

func keepIt(mu *sync.Mutex) *holder { return &holder{mu} }
func (h *holder) done()             { h.mu.Unlock() }

type r22d struct{ mu sync.Mutex }

func (s *r22d) f() *holder {
	s.mu.Lock()
	return keepIt(&s.mu)
}

func (s *r22d) g() {
	h := s.f()
	defer h.done()
}

// Iterators.
type r24 struct {
	mu sync.Mutex
	m  map[string]int
}

func (s *r24) all() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k, v := range s.m {
			if !yield(k, v) {
				return
			}
		}
	}
}

func (s *r24) snapshot() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.mu.Lock()
		var keys []string
		for k := range s.m {
			keys = append(keys, k)
		}
		s.mu.Unlock()
		for _, k := range keys {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *r24) sum() (n int) {
	for _, v := range s.all() {
		n += v
	}
	for k := range s.snapshot() {
		s.del(k)
	}
	return n
}

func (s *r24) del(k string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, k)
}

// A pointer to one of two locks.
type r28 struct {
	a, b sync.Mutex
	n    int
}

func (s *r28) f(x bool) {
	mu := &s.a
	if x {
		mu = &s.b
	}
	mu.Lock()
	defer mu.Unlock()
	s.n++
}

func (s *r28) which(x bool) *sync.Mutex {
	if x {
		return &s.a
	}
	return &s.b
}

func (s *r28) g(x bool) {
	s.which(x).Lock()
	defer s.which(x).Unlock()
	s.n++
}

// Ends without an unlock.
type r30 struct {
	mu sync.Mutex
	n  int
}

func (s *r30) f(k int) int {
	s.mu.Lock()
	switch k {
	case 0:
		log.Fatal("zero")
	case 1:
		panic("one")
	case 2:
		os.Exit(2)
	case 3:
		runtime.Goexit()
	case 4:
		fail("four")
	}
	s.mu.Unlock()
	return k
}

func fail(s string) { panic(s) }

// Made locked.
type r33 struct {
	mu sync.Mutex
	n  int
}

func new33() *r33 {
	s := &r33{}
	s.mu.Lock()
	return s
}

func (s *r33) start() { s.mu.Unlock() }

func (s *r33) f() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

func use33() {
	s := new33()
	s.start()
	s.f()
}

// Begin and Commit.
type tx34 struct{ s *r34 }
type r34 struct {
	mu sync.RWMutex
	n  int
}

func (s *r34) Begin() *tx34 { s.mu.Lock(); return &tx34{s} }
func (t *tx34) Commit()     { t.s.n++; t.s.mu.Unlock() }
func (t *tx34) Rollback()   { t.s.mu.Unlock() }
func (s *r34) Update(f func(*tx34) error) error {
	t := s.Begin()
	if err := f(t); err != nil {
		t.Rollback()
		return err
	}
	t.Commit()
	return nil
}

func (s *r34) View() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.n
}

// By the error.
type r36 struct {
	mu sync.Mutex
	n  int
}

func (s *r36) f(do func() error) error {
	s.mu.Lock()
	err := do()
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.n++
	s.mu.Unlock()
	return nil
}

func (s *r36) g(do func() error) (err error) {
	s.mu.Lock()
	if err = do(); err == nil {
		s.n++
	}
	s.mu.Unlock()
	return
}

func (s *r36) h(do func() error) (err error) {
	s.mu.Lock()
	defer func() {
		if err == nil {
			s.n++
		}
		s.mu.Unlock()
	}()
	return do()
}

func (s *r36) init(do func() error) (err error) {
	s.mu.Lock()
	defer func() {
		if err != nil {
			s.mu.Unlock()
		}
	}()
	if err = do(); err != nil {
		return err
	}
	s.n++
	s.mu.Unlock()
	return nil
}

// A singleton with Once and a lock.
type r38 struct {
	once sync.Once
	mu   sync.Mutex
	n    int
}

func (s *r38) get() int {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n = 1
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Recursion that unlocks before.
type r39 struct {
	mu   sync.Mutex
	kids []*r39
	n    int
}

func (s *r39) walk(f func(*r39)) {
	s.mu.Lock()
	kids := slices.Clone(s.kids)
	s.mu.Unlock()
	f(s)
	for _, k := range kids {
		k.walk(f)
	}
}

func (s *r39) retry(n int) {
	s.mu.Lock()
	if s.n < n {
		s.mu.Unlock()
		s.retry(n - 1)
		return
	}
	s.mu.Unlock()
}

// Worker and close.
type r40 struct {
	mu   sync.Mutex
	jobs chan int
	done chan struct{}
	wg   sync.WaitGroup
	n    int
}

func new40() *r40 {
	s := &r40{jobs: make(chan int), done: make(chan struct{})}
	s.wg.Add(1)
	go s.loop()
	return s
}

func (s *r40) loop() {
	defer s.wg.Done()
	defer close(s.done)
	for j := range s.jobs {
		s.mu.Lock()
		s.n += j
		s.mu.Unlock()
	}
}

func (s *r40) add(j int) {
	select {
	case s.jobs <- j:
	case <-s.done:
	}
}

func (s *r40) close() {
	close(s.jobs)
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.done
	s.n = 0
}

// A result that is sent under the lock to a buffer.
type r41 struct {
	mu   sync.Mutex
	subs []chan int
	last chan int
}

func new41() *r41 { return &r41{last: make(chan int, 1)} }

func (s *r41) publish(v int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.subs {
		select {
		case c <- v:
		default:
		}
	}
	select {
	case <-s.last:
	default:
	}
	s.last <- v
}

func (s *r41) sub() chan int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan int, 1)
	s.subs = append(s.subs, c)
	return c
}

// Singleflight.
type call42 struct {
	done chan struct{}
	v    int
}
type r42 struct {
	mu sync.Mutex
	m  map[string]*call42
}

func (s *r42) do(k string, f func() int) int {
	s.mu.Lock()
	if c, ok := s.m[k]; ok {
		s.mu.Unlock()
		<-c.done
		return c.v
	}
	c := &call42{done: make(chan struct{})}
	s.m[k] = c
	s.mu.Unlock()
	c.v = f()
	close(c.done)
	s.mu.Lock()
	delete(s.m, k)
	s.mu.Unlock()
	return c.v
}

// A lock in a map and pooled.
type r43 struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

func (s *r43) lock(k string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[k]
	if l == nil {
		l = new(sync.Mutex)
		s.locks[k] = l
	}
	return l
}

func (s *r43) with(k string, f func()) {
	l := s.lock(k)
	l.Lock()
	defer l.Unlock()
	f()
}

// Timer.
type r44 struct {
	mu    sync.Mutex
	timer *time.Timer
	n     int
}

func (s *r44) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n++
		s.timer.Reset(time.Second)
	})
}

func (s *r44) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.timer.Stop() {
		s.n = 0
	}
}

// Parent and child, one order.
type parent45 struct {
	mu   sync.Mutex
	kids map[int]*child45
}
type child45 struct {
	mu sync.Mutex
	p  *parent45
	id int
}

func (p *parent45) each() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.kids {
		c.mu.Lock()
		c.id++
		c.mu.Unlock()
	}
}

func (c *child45) remove() {
	c.mu.Lock()
	id := c.id
	c.mu.Unlock()
	c.p.mu.Lock()
	delete(c.p.kids, id)
	c.p.mu.Unlock()
}

func (c *child45) removeIfOdd() {
	c.mu.Lock()
	if c.id%2 == 0 {
		c.mu.Unlock()
		return
	}
	id := c.id
	c.mu.Unlock()
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	delete(c.p.kids, id)
}

// An interface of a lock, a struct with a pointer to a lock.
type r46 struct {
	mu  *sync.Mutex
	lk  sync.Locker
	rw  *sync.RWMutex
	val int
}

func new46(mu *sync.Mutex, rw *sync.RWMutex) *r46 { return &r46{mu: mu, lk: rw.RLocker(), rw: rw} }

func (s *r46) f() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lk.Lock()
	defer s.lk.Unlock()
	s.val++
}

func (s *r46) g() int {
	s.rw.RLock()
	defer s.rw.RUnlock()
	return s.val
}

// A lock by value in a closure that runs later.
func r47() (inc, dec func(), get func() int) {
	var mu sync.Mutex
	n := 0
	inc = func() { mu.Lock(); n++; mu.Unlock() }
	dec = func() { mu.Lock(); defer mu.Unlock(); n-- }
	get = func() int { mu.Lock(); defer mu.Unlock(); return n }
	return inc, dec, get
}

func r47b() {
	var mu sync.Mutex
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				mu.Unlock()
			}
		}()
	}
	mu.Lock()
	close(done)
	mu.Unlock()
	wg.Wait()
}

// A type switch and fallthrough.
type r48 struct {
	mu sync.Mutex
	n  int
}

func (s *r48) f(v any) string {
	s.mu.Lock()
	switch v := v.(type) {
	case int:
		s.n += v
	case string:
		s.mu.Unlock()
		return v
	default:
		defer s.mu.Unlock()
		return "?"
	}
	s.mu.Unlock()
	return ""
}

func (s *r48) g(v int) {
	switch v {
	case 0:
		s.mu.Lock()
		fallthrough
	case 1:
		if v == 1 {
			s.mu.Lock()
		}
		s.n++
		s.mu.Unlock()
	}
}

// Chained options: unlock for a call and lock again by a helper.
type r49 struct {
	mu sync.Mutex
	n  int
}

func (s *r49) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

func (s *r49) f() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlocked(func() { s.g() })
	s.n++
}

func (s *r49) g() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

// A copy of the receiver's pointer.
type r50 struct {
	mu sync.Mutex
	n  int
}

func (s *r50) f() {
	self := s
	self.mu.Lock()
	s.n++
	s.mu.Unlock()
}

func (s *r50) clone() *r50 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := new(r50)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = s.n
	return c
}
