package filelock

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

// hold is the hold of one owner on a file, from its first acquisition to its last release.
type hold struct {
	f      *file
	client *Client // whose Mutex began it
	path   string
	owner  locks.Owner
	mode   mode
	token  uint64

	// Guarded by f.mu.
	count int           // 0 after the last release
	cause error         // why the hold is lost
	lost  chan struct{} // made on demand
	watch *time.Timer   // see WithWatch
}

var _ locks.Hold = (*hold)(nil)

func (h *hold) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s %q: %w", op, h.path, err)
}

// Descriptor returns a duplicate of the descriptor of the file, see [Mutex.Hold].
func (h *hold) Descriptor() (*os.File, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	err := h.endCause()
	if err == nil {
		var d *os.File
		if d, err = h.f.d.duplicate(); err == nil {
			return d, nil
		}
	}
	return nil, h.fail("duplicate the descriptor", err)
}

var errReleased = adapter.Released("the hold is")

// endCause returns why h is over, or nil. f.mu is held.
func (h *hold) endCause() error {
	if h.count == 0 {
		return errReleased
	}
	return h.cause
}

// lose marks h as lost. f.mu is held.
func (h *hold) lose(cause error) {
	h.cause = fmt.Errorf("%w: %w", locks.ErrLost, cause)
	if h.lost != nil {
		close(h.lost)
	}
}

// Lost returns the channel that is closed when this process notices that the file was deleted or
// replaced. Err notices, and so does another acquisition in this process. With [WithWatch] a timer
// calls Err.
func (h *hold) Lost() <-chan struct{} {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.lost != nil {
		return h.lost
	}
	h.lost = make(chan struct{})
	switch {
	case h.cause != nil:
		close(h.lost)
	case h.count > 0 && h.client.watch > 0:
		h.watch = time.AfterFunc(h.client.watch, func() {
			if h.Err() == nil {
				h.watch.Reset(h.client.watch)
			}
		})
	}
	return h.lost
}

// Err asks the system whether the path still leads to the locked file. It costs one stat.
func (h *hold) Err() error {
	f := h.f
	f.mu.Lock()
	err := h.endCause()
	if err == nil {
		if same, failed := leads(h.path, f.id); !same && failed == nil { // an unknown answer is no loss
			f.lose(errReplaced, func(other *hold) bool { return other.path == h.path })
			err = h.cause
			defer files.part(h.path, f)
		}
	}
	f.mu.Unlock()
	return err
}

// Token returns the fencing token, or 0 without [WithTokens].
func (h *hold) Token() uint64 { return h.token }

// Deadline returns false: a file lock lasts as long as its process.
func (h *hold) Deadline() (time.Time, bool) { return time.Time{}, false }

// Extend has nothing to prolong. It fails if the hold is lost.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	err := adapter.Check(ctx)
	switch {
	case err != nil:
	case d <= 0:
		err = fmt.Errorf("%v is not a positive duration", d)
	default:
		if err = h.Err(); err == errReleased {
			err = fmt.Errorf("%w: the hold is released already", locks.ErrLost)
		}
	}
	if err != nil {
		return h.fail("extend", err)
	}
	return nil
}
