package filelock

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jucgo/locks"
)

// hold is what one owner has of a file, from its first acquisition to its last release.
type hold struct {
	f      *file
	client *Client // whose Mutex began it
	place  place
	owner  locks.Owner
	kind   mode
	token  uint64

	// Guarded by f.mu.
	count    int
	released bool
	shown    bool          // the owner has it as a locks.Hold, so it cannot be reused
	cause    error         // why it is lost
	lost     chan struct{} // made on demand
	over     chan struct{} // closed at the end, if a goroutine watches
}

var _ locks.Hold = (*hold)(nil)

func (h *hold) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s %q: %w", op, h.place.path, err)
}

// Descriptor returns a duplicate of the descriptor of the file, see [Mutex.Hold].
func (h *hold) Descriptor() (*os.File, error) {
	const op = "duplicate the descriptor"
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	switch {
	case h.cause != nil:
		return nil, h.fail(op, h.cause)
	case h.released:
		return nil, h.fail(op, locks.ErrNotHeld)
	}
	d, err := h.f.d.duplicate(h.place.path)
	if err != nil {
		return nil, h.fail(op, err)
	}
	return d, nil
}

// closed is the Lost channel of holds that are lost before anybody asks for it.
var closed = make(chan struct{})

func init() { close(closed) }

// lose marks h as lost. f.mu is held.
func (h *hold) lose(cause error) {
	h.cause = fmt.Errorf("%w: %w", locks.ErrLost, cause)
	if h.lost == nil {
		h.lost = closed
	} else {
		close(h.lost)
	}
}

// Lost returns the channel that is closed when this process notices that the file was deleted
// or replaced. Err notices, and so does another acquisition in this process. With [WithWatch] a
// goroutine checks.
func (h *hold) Lost() <-chan struct{} {
	f := h.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
	}
	if h.over == nil && !h.released && h.cause == nil && h.client.watch > 0 && h.client.begin() {
		h.over = make(chan struct{})
		go h.watch(h.over)
	}
	return h.lost
}

// watch checks h again and again until it is over.
func (h *hold) watch(over <-chan struct{}) {
	defer h.client.jobs.Done()
	tick := time.NewTicker(h.client.watch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if h.Err() != nil {
				return
			}
		case <-over:
			return
		case <-h.client.open.Done():
			return
		}
	}
}

// Err asks the system whether the path still leads to the locked file. It costs one stat.
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
	if same || err != nil { // an unknown answer is no loss
		f.mu.Unlock()
		return nil
	}
	f.lose(errReplaced, func(other *hold) bool { return other.place.path == h.place.path })
	f.mu.Unlock()
	files.part(h.place.path, f)
	return h.cause // does not change any more
}

// Token returns the fencing token, or 0 without [WithTokens].
func (h *hold) Token() uint64 { return h.token }

// Deadline returns false: a file lock lasts as long as its process.
func (h *hold) Deadline() (time.Time, bool) { return time.Time{}, false }

// Extend has nothing to prolong. It fails if the hold is lost.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	const op = "extend"
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
