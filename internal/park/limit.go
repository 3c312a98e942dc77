package park

import (
	"context"
	"time"
)

// Limit is what cuts a wait short: a context or a timer. A nil Limit never ends.
type Limit struct {
	ctx   <-chan struct{}
	timer *time.Timer
}

// After returns a Limit that ends after d. It has to be stopped.
func After(d time.Duration) *Limit { return &Limit{timer: time.NewTimer(d)} }

// Until returns a Limit that ends with ctx, or nil if ctx never ends.
func Until(ctx context.Context) *Limit {
	if done := ctx.Done(); done != nil {
		return &Limit{ctx: done}
	}
	return nil
}

// Open makes p a place where the limit can cut a wait short, until p is reset. It must happen
// before another goroutine can get at p.
func (l *Limit) Open(p *Place) {
	if l != nil {
		p.Open()
	}
}

// Stop ends the use of the limit.
func (l *Limit) Stop() {
	if l != nil && l.timer != nil {
		l.timer.Stop()
	}
}

// Park parks the caller at p, which the limit has opened. It reports whether a permit came before
// the limit ended.
func (l *Limit) Park(p *Place) bool {
	if l == nil {
		p.Park()
		return true
	}
	var timer <-chan time.Time
	if l.timer != nil {
		timer = l.timer.C
	}
	select {
	case <-p.c:
		return true
	case <-l.ctx:
	case <-timer:
	}
	return false
}
