package waits

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/jucgo/locks/internal/syncq"
)

// watched has the locks that have a Kind and had a waiter at any time, so that the waits of all of
// them can be found: *syncq.Kind by weak.Pointer[syncq.Sync]. It keeps neither a lock nor a waiter
// alive: the goroutine leak profile depends on that. A lock enters once in its life.
var watched sync.Map

// awaited says which lock a goroutine waits for, while waits are refused: weak.Pointer[syncq.Sync]
// by int64. It may be out of date about goroutines that have just stopped waiting.
var awaited sync.Map

// refusing says that waits that would close a cycle are refused.
var refusing atomic.Bool

// begin is held while a wait begins and waits are refused.
var begin sync.Mutex

func init() { syncq.SetWatcher(watcher{}) }

type watcher struct{}

// Begin begins a wait, or refuses it.
func (watcher) Begin(e syncq.Entry) (queued bool) {
	if !refusing.Load() {
		return e.Enqueue()
	}
	begin.Lock()
	defer begin.Unlock()
	queued = e.Enqueue()
	if queued && e.Refusable() && closesCycle(waitOf(e)) {
		e.Refuse()
		return false
	}
	return queued
}

// Watch makes the lock findable. The cost is bounded, since the guard is held, as in Queued.
func (watcher) Watch(s *syncq.Sync, k *syncq.Kind) {
	p := weak.Make(s)
	watched.Store(p, k)
	runtime.AddCleanup(s, func(p weak.Pointer[syncq.Sync]) { watched.Delete(p) }, p)
}

// Queued makes the wait findable by its goroutine.
func (watcher) Queued(s *syncq.Sync, who int64) bool {
	if who <= 0 || !refusing.Load() {
		return false
	}
	awaited.Store(who, weak.Make(s))
	return true
}

// Ended forgets the wait of who.
func (watcher) Ended(who int64) { awaited.Delete(who) }

// Acquired records where owner acquired the lock.
func (watcher) Acquired(s *syncq.Sync, k *syncq.Kind, owner int64) { record(s, k, owner) }

// Refuse switches the refusal of waits that would close a cycle, and reports whether it was on.
// Waits that have begun already are not refused, but seen.
func Refuse(on bool) (was bool) {
	begin.Lock()
	defer begin.Unlock()
	if was = refusing.Swap(on); on && !was {
		for _, s := range locks() {
			s.Report()
		}
	}
	return was
}

// Kind returns the kind of the lock, or nil if nobody has waited for it.
func Kind(s *syncq.Sync) *syncq.Kind {
	k, _ := watched.Load(weak.Make(s))
	kind, _ := k.(*syncq.Kind)
	return kind
}

// locks returns the locks that are or were waited for.
func locks() (all []*syncq.Sync) {
	watched.Range(func(p, _ any) bool {
		if s := p.(weak.Pointer[syncq.Sync]).Value(); s != nil {
			all = append(all, s)
		}
		return true
	})
	return all
}

// awaitedBy returns the lock that a goroutine waits for, or nil if no wait of it is known.
func awaitedBy(goroutine int64) *syncq.Sync {
	p, _ := awaited.Load(goroutine)
	lock, _ := p.(weak.Pointer[syncq.Sync])
	return lock.Value()
}

// allAwaitedBy is awaitedBy of all goroutines among who: which of them wait for which lock.
func allAwaitedBy(who []int64) map[*syncq.Sync]map[int64]bool {
	at := make(map[*syncq.Sync]map[int64]bool)
	for _, h := range who {
		lock := awaitedBy(h)
		if lock == nil {
			continue
		}
		if at[lock] == nil {
			at[lock] = make(map[int64]bool)
		}
		at[lock][h] = true
	}
	return at
}
