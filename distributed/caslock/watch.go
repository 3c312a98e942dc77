package caslock

import (
	"context"
	"sync/atomic"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Watch notifies of changes of the document, or makes the waiter poll. Watch returns at once: the
// waiter reads the document again when the store's watch is on.
func (s *store) Watch(_ context.Context, id driver.HoldID) (driver.Watch, error) {
	ctx, cancel := context.WithCancel(s.life)
	w := &watch{adapter.NewBell(), cancel}
	notify := s.poll
	if s.watcher != nil {
		notify = s.follow
	}
	if !s.jobs.Go(func() { notify(ctx, id.Name, w.Ring) }) {
		cancel()
		return nil, locks.ErrClosed
	}
	return w, nil
}

// watch notifies one waiter.
type watch struct {
	adapter.Bell
	cancel context.CancelFunc
}

func (w *watch) Close() { w.cancel() }

// follow notifies the waiter of each notice of the store. When the store's watch ends, follow
// begins another watch after a pause. The pause doubles until a watch lasts longer than the
// pause. If a watch does not begin at all, the waiter polls in these pauses.
func (s *store) follow(ctx context.Context, name string, tell func()) {
	for pause := s.first; ; pause = min(2*pause, s.most) {
		var on atomic.Bool
		began := driver.Now()
		_ = s.watcher.Watch(ctx, name+s.suffix, func() { // whatever the error is, the next watch may do better
			on.Store(true)
			tell()
		})
		if driver.Now().Sub(began) > pause {
			pause = s.first
		}
		if !adapter.Sleep(ctx, adapter.Jitter(pause)) {
			return
		}
		if !on.Load() {
			tell()
		}
	}
}

// poll tells the waiter to ask after each pause. A pause is a quarter of the time for which the
// lock has had the same holder. So all waiters pause about as long, whenever they came. A waiter
// does not ask less often because it has waited for longer.
func (s *store) poll(ctx context.Context, name string, tell func()) {
	first := adapter.Jitter(s.first)
	for adapter.Sleep(ctx, first) { // the waiter has asked by then, and may have seen another holder
		rest := adapter.Jitter(min(s.sights.lasts(name)/4, s.most)) - first
		if rest > 0 && !adapter.Sleep(ctx, rest) {
			return
		}
		tell()
	}
}
