package caslock

import (
	"context"
	"sync"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
)

// Watch notifies of changes of the document, or has the waiter poll.
func (s *store) Watch(ctx context.Context, id lease.HoldID) (lease.Watch, error) {
	if s.watcher == nil {
		return s.poll(id.Name), nil
	}
	life, cancel := context.WithCancel(s.life)
	w := &watch{c: make(chan struct{}, 1), cancel: cancel}
	begun, ended := make(chan struct{}), make(chan error, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	changed := func() {
		begin()
		w.tell()
	}
	s.jobs.Go(func() {
		for {
			err := s.watcher.Watch(life, id.Name, changed)
			select {
			case ended <- err:
			default: // not the first one
			}
			if !adapter.Sleep(life, s.first) {
				return
			}
		}
	})
	select {
	case <-begun:
		return w, nil
	case err := <-ended:
		cancel()
		return nil, err // nil is as good as an error: the waiter polls
	case <-ctx.Done():
		cancel()
		return nil, adapter.Ended(ctx)
	}
}

// watch notifies one waiter.
type watch struct {
	c      chan struct{}
	cancel context.CancelFunc
}

func (w *watch) tell() {
	select {
	case w.c <- struct{}{}:
	default: // the waiter is told already, and has not asked yet
	}
}

func (w *watch) C() <-chan struct{} { return w.c }
func (w *watch) Close()             { w.cancel() }

// poll returns a watch that tells the waiter to ask after each pause. A pause is a quarter of the
// time for which the lock has had the same holder. So all waiters pause about as long, whenever
// they came, and none asks less often because it has waited for longer.
func (s *store) poll(name string) *watch {
	ctx, cancel := context.WithCancel(s.life)
	w := &watch{c: make(chan struct{}, 1), cancel: cancel}
	s.jobs.Go(func() {
		first := adapter.Jitter(s.first)
		for adapter.Sleep(ctx, first) { // the waiter has asked by then, and may have seen another holder
			rest := adapter.Jitter(min(s.sights.lasts(name)/4, s.most)) - first
			if rest > 0 && !adapter.Sleep(ctx, rest) {
				return
			}
			w.tell()
		}
	})
	return w
}
