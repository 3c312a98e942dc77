package park

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/sched"
)

// Limit cuts a wait short: it is a context or a duration. A nil Limit never ends.
type Limit struct {
	done  <-chan struct{}  // of a context, or nil
	d     time.Duration    // without done
	timer <-chan time.Time // of a duration, from Open on
}

// After returns a Limit that ends d after the wait begins.
func After(d time.Duration) *Limit { return &Limit{d: d} }

// Until returns a Limit that ends with ctx, or nil if ctx never ends. It calls ctx.Done, which is a
// user's code and may panic. A caller therefore calls Until before it changes anything.
func Until(ctx context.Context) *Limit {
	done := ctx.Done()
	if done == nil {
		return nil
	}
	l := &Limit{done: done}
	if sched.On {
		if _, ok := ctx.Deadline(); ok {
			l.d = 1 // Park announces that time can end the wait
		}
	}
	return l
}

// None reports whether the limit leaves no time to wait.
func (l *Limit) None() bool { return l != nil && l.done == nil && l.d <= 0 }

// Open begins a wait at p, which the limit can cut short until p is reset, and reports whether the
// limit can end. Call Open before another goroutine can get at p. After the wait, nothing is left
// to stop: a timer is in the runtime's heap only while a goroutine waits for its channel.
func (l *Limit) Open(p *Place) (ends bool) {
	if l == nil {
		return false
	}
	if l.done == nil {
		l.timer = time.After(l.d)
	}
	p.Open()
	return true
}

// Park parks the caller at p, where Open began the wait, by p.ParkAndUnlock(g). If p is open, g is
// nil. It reports whether an unpark came before the limit ended.
func (l *Limit) Park(p *Place, g *sync.Mutex) bool {
	if l == nil || p.c == nil {
		p.ParkAndUnlock(g)
		return true
	}
	if sched.On {
		sched.Parks(p)
		sched.Limited(l.d)
		defer sched.Woken()
	}
	select {
	case <-p.c:
		return true
	case <-l.done:
	case <-l.timer:
	}
	return false
}
