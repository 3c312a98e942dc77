// The functions of wrong.go have one mistake each, and those of right.go have none. They are written as
// people write Go with locks, and were not in any test when the checks were written.
package idioms

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

type w1 struct {
	mu sync.Mutex
	ch chan int
	n  int
}

func (s *w1) f(ctx context.Context) error { // a case of a select returns with the lock
	s.mu.Lock()
	select {
	case v := <-s.ch:
		s.n += v
	case <-ctx.Done():
		return ctx.Err() // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

func (s *w1) G(v int) { s.ch <- v }

type w2 struct {
	mu sync.Mutex
	n  int
}

func (s *w2) f(in [][]int) { // a labelled continue keeps the lock
outer:
	for _, row := range in {
		s.mu.Lock()
		for _, v := range row {
			if v < 0 {
				continue outer // found: missingunlock
			}
			s.n += v
		}
		s.mu.Unlock()
	}
}

type w3 struct {
	mu sync.Mutex
	n  int
}

func (s *w3) f(in [][]int) int { // a labelled break keeps the lock
outer:
	for _, row := range in {
		for _, v := range row {
			s.mu.Lock()
			if v == 99 {
				break outer // found: missingunlock
			}
			s.n += v
			s.mu.Unlock()
		}
	}
	return s.n
}

type w4 struct {
	mu sync.Mutex
	n  int
}

func (s *w4) f(g func()) (err error) { // the deferred literal unlocks after a panic only
	s.mu.Lock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			s.mu.Unlock()
		}
	}()
	g()
	s.n++
	return nil // found: missingunlock
}

func (s *w4) h() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

type w5[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V
}

func (s *w5[K, V]) Get(k K) V {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[k]
}

func (s *w5[K, V]) Update(k K, f func(V) V) { // Get under the lock, in a generic type
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[k] = f(s.Get(k)) // found: doublelock
}

type w6 struct {
	sync.Mutex
	n int
}

func (s *w6) Inc() {
	s.Lock()
	defer s.Unlock()
	s.n++
}

func (s *w6) Twice() { // an embedded lock, twice
	s.Lock()
	defer s.Unlock()
	s.Inc() // found: doublelock
	s.n++
}

func work7(mu *sync.Mutex, n int) error { // a lock that is a parameter, not released before a return
	mu.Lock()
	if n > 3 {
		return errBusy // found: missingunlock
	}
	mu.Unlock()
	return nil
}

type w7 struct{ mu sync.Mutex }

func (s *w7) f() error { return work7(&s.mu, 2) }

func inc8(mu *sync.Mutex, n *int) {
	mu.Lock()
	defer mu.Unlock()
	*n++
}

type w8 struct {
	mu sync.Mutex
	n  int
}

func (s *w8) f() { // the callee locks its parameter
	s.mu.Lock()
	defer s.mu.Unlock()
	inc8(&s.mu, &s.n) // found: doublelock
}

func lock9(mu *sync.Mutex) { mu.Lock() }

type w9 struct {
	mu sync.Mutex
	n  int
}

func (s *w9) f() error { // a helper locks, and a return does not unlock
	lock9(&s.mu)
	if s.n > 3 {
		return errBusy // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

type w10 struct {
	mu sync.RWMutex
	n  int
}

func (s *w10) get() int { // an upgrade by a helper
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.n == 0 {
		s.fill() // found: lockupgrade
	}
	return s.n
}

func (s *w10) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = 1
}

type w11 struct {
	mu sync.Mutex
	n  int
}

func (s *w11) f() { // a method value, called under the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.g
	g() // found: doublelock
}

func (s *w11) g() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

type w12 struct {
	mu sync.Mutex
	n  int
}

func (s *w12) f() bool { // a try, and a return with the lock
	if !s.mu.TryLock() {
		return false
	}
	if s.n > 3 {
		return false // found: missingunlock
	}
	s.n++
	s.mu.Unlock()
	return true
}

type w14 struct {
	mu  sync.Mutex
	all []int
}

func (s *w14) f(parts []int) error { // an errgroup is awaited under the lock of its goroutines
	var g errgroup.Group
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		g.Go(func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all = append(s.all, p)
			return nil
		})
	}
	return g.Wait() // found: blocked
}

type w15 struct {
	mu  sync.Mutex
	all []int
}

func (s *w15) f(parts []int) { // WaitGroup.Go
	var wg sync.WaitGroup
	s.mu.Lock()
	for _, p := range parts {
		wg.Go(func() {
			s.mu.Lock()
			s.all = append(s.all, p)
			s.mu.Unlock()
		})
	}
	wg.Wait() // found: blocked
	s.mu.Unlock()
}

type w16 struct {
	mu sync.Mutex
	m  map[string]int
}

func (s *w16) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k := range s.m {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *w16) Del(k string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, k)
}

func (s *w16) Clear() { // the body of a range over an iterator that holds the lock
	for k := range s.All() { // found: doublelock
		s.Del(k)
	}
}

type w17 struct {
	a, b sync.Mutex
	n    int
}

func with17(l sync.Locker, f func()) {
	l.Lock()
	defer l.Unlock()
	f()
}

func (s *w17) f() { with17(&s.a, func() { with17(&s.b, func() { s.n++ }) }) } // two orders by a helper with a callback // found: lockorder
func (s *w17) g() { with17(&s.b, func() { with17(&s.a, func() { s.n-- }) }) }

type w18 struct {
	mu sync.Mutex
	n  int
}

func (s *w18) f() { // a helper with a callback, twice the same lock
	with17(&s.mu, func() { s.g() }) // found: doublelock
}

func (s *w18) g() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

type w19 struct {
	mu sync.RWMutex
	n  int
}

func (s *w19) f() int { // the other side
	s.mu.RLock()
	defer s.mu.Unlock() // found: doubleunlock
	return s.n          // found: missingunlock
}

func w20() { // local variables: waits for a goroutine that needs the lock
	var mu sync.Mutex
	done := make(chan struct{})
	mu.Lock()
	go func() {
		mu.Lock()
		defer mu.Unlock()
		close(done)
	}()
	<-done // found: blocked
	mu.Unlock()
}

type w21 struct {
	mu     sync.Mutex
	cond   *sync.Cond
	q      []int
	closed bool
}

func new21() *w21 {
	s := &w21{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func (s *w21) pop() (int, error) { // a return in the loop of a wait
	s.mu.Lock()
	for len(s.q) == 0 {
		if s.closed {
			return 0, errBusy // found: missingunlock
		}
		s.cond.Wait()
	}
	v := s.q[0]
	s.q = s.q[1:]
	s.mu.Unlock()
	return v, nil
}

func (s *w21) push(v int) {
	s.mu.Lock()
	s.q = append(s.q, v)
	s.mu.Unlock()
	s.cond.Signal()
}

type w22 struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
}

func (s *w22) f() { // if, not for
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		s.cond.Wait() // found: waitloop
	}
	s.n--
}

type w23 struct {
	mu sync.Mutex
	n  int
}

func (s *w23) f() func() error { // in a literal
	return func() error {
		s.mu.Lock()
		if s.n > 3 {
			return errBusy // found: missingunlock
		}
		s.mu.Unlock()
		return nil
	}
}

type w24 struct {
	mu sync.Mutex
	n  int
}

func (s *w24) f(o *w24) { // another lock is unlocked
	s.mu.Lock()
	o.mu.Lock()
	s.n, o.n = o.n, s.n
	s.mu.Unlock()
	s.mu.Unlock() // found: doubleunlock
} // found: missingunlock

func (s *w24) g() { s.mu.Lock(); defer s.mu.Unlock(); s.n++ }

type w25 struct {
	mu sync.Mutex
	n  int
}

func (s *w25) f(in []int) { // defer in a loop
	for _, v := range in {
		s.mu.Lock()
		defer s.mu.Unlock() // found: deferloop
		s.n += v
	}
}

type w26 struct {
	mu   sync.Mutex
	n    int
	kids []*w26
}

func (s *w26) f(k int) int { // calls itself
	s.mu.Lock()
	defer s.mu.Unlock()
	if k == 0 {
		return s.n
	}
	return s.f(k - 1) // found: doublelock
}

type w27 struct {
	mu   sync.RWMutex
	name string
}

func (s *w27) String() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.name
}

func (s *w27) Rename(n string) error { // String by fmt
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == "" {
		return fmt.Errorf("rename %s: empty", s) // found: doublelock
	}
	s.name = n
	return nil
}

type store28 interface {
	Get() int
	Set(int)
}
type w28 struct {
	mu sync.Mutex
	n  int
}

func (s *w28) Get() int { s.mu.Lock(); defer s.mu.Unlock(); return s.n }
func (s *w28) Set(n int) { // through an interface with one type: not found: the interface is a local variable
	s.mu.Lock()
	defer s.mu.Unlock()
	var st store28 = s
	if st.Get() != n {
		s.n = n
	}
}

type a29 struct {
	mu sync.Mutex
	b  *b29
}
type b29 struct {
	mu sync.Mutex
	a  *a29
}

func (a *a29) f() { // two orders
	a.mu.Lock()
	defer a.mu.Unlock()
	a.b.g() // found: lockorder
}
func (b *b29) g() { b.mu.Lock(); defer b.mu.Unlock() }
func (b *b29) h() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.a.i()
}
func (a *a29) i() { a.mu.Lock(); defer a.mu.Unlock() }

type w30 struct {
	mu sync.Mutex
	n  int
}

func (s *w30) f(v any) error { // a case of a type switch
	s.mu.Lock()
	switch v := v.(type) {
	case int:
		s.n += v
	case string:
		return errBusy // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

type w31 struct {
	mu sync.Mutex
	n  int
}

func (s *w31) f() { // unlocks twice: a defer and by hand
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 0 {
		s.mu.Unlock()
		return // found: doubleunlock
	}
	s.n++
}

type w32 struct {
	mu   sync.Mutex
	jobs chan int
	n    int
}

func new32() *w32 {
	s := &w32{jobs: make(chan int)}
	go s.loop()
	return s
}

func (s *w32) loop() {
	for j := range s.jobs {
		s.mu.Lock()
		s.n += j
		s.mu.Unlock()
	}
}

func (s *w32) add(j int) { // sends under the lock of the receiver
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs <- j // found: blocked
}

type w33 struct {
	mu sync.Mutex
	n  int
}

func (s *w33) lockAndCheck() bool {
	s.mu.Lock()
	if s.n < 0 {
		s.mu.Unlock()
		return false
	}
	return true
}

func (s *w33) f() error { // a helper locks if it returns true
	if !s.lockAndCheck() {
		return errBusy
	}
	if s.n > 5 {
		return errBusy // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

type w34 struct {
	mu sync.Mutex
	n  int
}

func (s *w34) f(work func() error) error { // err shadows; a return inside of the loop
	for range 3 {
		s.mu.Lock()
		if err := work(); err != nil {
			return err // found: missingunlock
		}
		s.mu.Unlock()
	}
	return nil
}

var mu35 sync.Mutex

func f35() { // a variable of the package
	mu35.Lock()
	g35() // found: doublelock
	mu35.Unlock()
}

func g35() {
	mu35.Lock()
	defer mu35.Unlock()
}

type w36 struct {
	mu sync.Mutex
	n  int
}

func (s *w36) lock() func() { s.mu.Lock(); return s.mu.Unlock }

func (s *w36) f() { // defer s.lock() without the second call
	defer s.lock() // found: deferlock
	s.n++
}

type w37 struct {
	mu   sync.Mutex
	done chan struct{}
}

func (s *w37) start() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for i := range 3 {
			s.mu.Lock()
			_ = i
			s.mu.Unlock()
		}
	}()
}

func (s *w37) stop() { // waits for the end of a goroutine that needs the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.done // found: blocked
}

type w38 struct {
	mu sync.Mutex
	t  *time.Timer
	n  int
}

func (s *w38) f(ok bool) { // an unlock in one branch only
	s.mu.Lock()
	if ok {
		s.n++
		s.mu.Unlock()
	} else {
		s.n-- // found: missingunlock
	}
}

type w39 struct {
	mu sync.Mutex
	on func()
}

func (s *w39) fire() { // a callback in a field
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on() // found: doublelock
}

func new39() *w39 {
	s := &w39{}
	s.on = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return s
}

type w40 struct {
	once sync.Once
	mu   sync.Mutex
	n    int
}

func (s *w40) init() { s.mu.Lock(); defer s.mu.Unlock(); s.n = 1 }
func (s *w40) f() int { // Once.Do of a function that locks, under the lock: not found: Do may not call it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once.Do(s.init)
	return s.n
}

type w41 struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
}

func newWaiter41() *w41 {
	s := &w41{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func (s *w41) wait() { // a wait without the lock: not found: no check looks for it
	for s.n == 0 {
		s.cond.Wait()
	}
	s.n--
}

func (s *w41) add() { s.mu.Lock(); s.n++; s.mu.Unlock(); s.cond.Broadcast() }

type w42 struct {
	mu sync.Mutex
	n  int
}

func (s *w42) f() { // unlocks what is not locked: not found: no check looks for it
	if s.n > 0 {
		s.mu.Lock()
		s.n--
	}
	s.mu.Unlock()
}

type w43 struct {
	mu sync.Mutex
	n  int
}

func (s *w43) f() (n int) { // a deferred lock
	s.mu.Lock()
	defer s.mu.Lock() // found: deferlock
	return s.n
}

type w44 struct {
	mu, other sync.Mutex
	n         int
}

func (s *w44) f() { // the other field is unlocked
	s.mu.Lock()
	defer s.other.Unlock() // found: otherunlock
	s.n++
}

func (s *w44) g() {
	s.mu.Lock()
	s.n++
	s.mu.Unlock()
	s.other.Lock()
	s.n--
	s.other.Unlock()
}

type w45 struct {
	mu sync.Mutex
	n  int
}

func each45(in []int, f func(int)) {
	for _, v := range in {
		f(v)
	}
}

func (s *w45) f(in []int) { // a callback under the lock of its maker
	s.mu.Lock()
	defer s.mu.Unlock()
	each45(in, func(v int) { // found: doublelock
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n += v
	})
}
