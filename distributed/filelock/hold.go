package filelock

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks"
)

// hold is a possession as its owner sees it.
type hold possession

var _ locks.Hold = (*hold)(nil)

func (h *hold) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s of %q: %w", op, h.place.path, err)
}

// Lost returns the channel that is closed when somebody has found out that the file was deleted or replaced: Err, another
// acquisition in this
// process, or, with [WithWatch], a goroutine that looks.
func (h *hold) Lost() <-chan struct{} {
	f := h.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
	}
	if h.over == nil && !h.released && h.cause == nil && h.p.watch > 0 && h.p.begin() {
		h.over = make(chan struct{})
		go h.watch(h.over)
	}
	return h.lost
}

// watch looks after h until over.
func (h *hold) watch(over <-chan struct{}) {
	defer h.p.jobs.Done()
	tick := time.NewTicker(h.p.watch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if h.Err() != nil {
				return
			}
		case <-over:
			return
		case <-h.p.open.Done():
			return
		}
	}
}

// Err asks the system whether the file still has its name.
func (h *hold) Err() error {
	f := h.f
	f.mu.Lock()
	switch {
	case h.released:
		f.mu.Unlock()
		return locks.ErrNotHeld
	case h.cause != nil:
		f.mu.Unlock()
		return h.cause
	}
	same, err := f.d.names(h.place, f.id)
	if same || err != nil { // that it cannot be known is no loss
		f.mu.Unlock()
		return nil
	}
	f.lose(errReplaced, func(q *possession) bool { return q.place.path == h.place.path })
	f.mu.Unlock()
	files.part(h.place.path, f)
	return h.cause // it does not change any more
}

func (h *hold) Token() uint64 { return h.token }

// Deadline returns false: a file lock lasts as long as its process.
func (h *hold) Deadline() (time.Time, bool) { return time.Time{}, false }

// Extend has nothing to prolong.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	const op = "Extend"
	switch {
	case ctx == nil:
		return h.fail(op, locks.ErrNilContext)
	case ctx.Err() != nil:
		return h.fail(op, ended(ctx))
	case d <= 0:
		return h.fail(op, fmt.Errorf("%v is not a positive duration", d))
	case h.Err() != nil:
		return h.fail(op, locks.ErrLost)
	}
	return nil
}
