package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

var _ locks.Inspector = (*Mutex)(nil)

// Inspect describes the lock of the file to people and for monitoring. When a caller reads the
// answer, the lock may have another holder. Either half of a read-write lock describes both.
//
// Holds of this process are known with their owners and tokens, and so is the local queue. A lock
// file lacks room for a label: host and process id describe this process. If this process does not
// hold the lock, Inspect tries to lock the file without waiting, and unlocks it at once. An attempt
// of another process may fail in between. If another process holds the lock, Linux reports the
// process ids of the holders in the same container. Inspect adds the names of their programs as
// labels. Waiting is -1, because waiters of other processes are unknown.
//
// A file that does not exist is free. Inspect does not create it.
func (l *Mutex) Inspect(ctx context.Context) (info locks.Info, err error) {
	err = adapter.Check(ctx)
	if err == nil && l.client.open.Err() != nil {
		err = locks.ErrClosed
	}
	if err == nil {
		info, err = l.inspect()
	}
	return info, l.fail("inspect", err)
}

func (l *Mutex) inspect() (info locks.Info, err error) {
	info.Waiting = -1
	f, _ := files.under(l.path)
	if f == nil {
		if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
			return info, nil
		}
		if f, err = files.get(l.path, l.client.perm); err != nil {
			return info, err
		}
	}
	host, _ := os.Hostname()
	label := fmt.Sprintf("%s/%d", host, os.Getpid())
	party := func(o locks.Owner, token uint64) locks.Party {
		return locks.Party{Owner: o, Token: token, Label: label, Host: host, PID: os.Getpid()}
	}
	for _, o := range f.local.Queued() {
		info.Waiters = append(info.Waiters, party(o, 0))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.writer != nil && f.writer.cause == nil:
		info.Held, info.Holders = true, []locks.Party{party(f.writer.owner, f.writer.token)}
	case f.held() && f.mode != unlocked:
		for o, h := range f.readers {
			if h.cause == nil {
				info.Holders = append(info.Holders, party(o, 0))
			}
		}
		info.Held, info.Shared = true, true
	case f.mode != unlocked: // on the way to a local waiter
		info.Held, info.Shared = true, f.mode == shared
	default:
		return info, f.others(&info)
	}
	return info, nil
}

// others asks the system whether another process holds the lock. f.mu is held, and this process
// does not have the lock.
func (f *file) others(info *locks.Info) error {
	if f.closed {
		return nil // replaced a moment ago
	}
	free, err := f.d.lockable(true)
	if free || err != nil {
		return err
	}
	info.Held = true
	info.Shared, err = f.d.lockable(false)
	info.Holders = holdersOf(f.id)
	return err
}

// lockable reports whether no other process has a conflicting lock at this moment.
func (d descriptor) lockable(exclusive bool) (bool, error) {
	ok, err := d.tryLock(exclusive)
	if ok {
		err = d.unlock()
	}
	return ok, err
}
