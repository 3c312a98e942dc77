package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jucgo/locks"
)

var _ locks.Inspector = (*Mutex)(nil)

// Inspect describes the lock of the file to people and for monitoring. When a caller reads the
// answer, the lock may have another holder. Either half of a read-write lock describes both.
//
// Holds of this process are known with their owners and tokens, and so is the local queue. A lock
// file has no room for a label: host and process id describe this process. If this process does not
// hold the lock, Inspect asks the system for it without waiting, and gives it back at once. An
// attempt of another process may fail in between. If another process holds it, Linux tells the
// process ids of the holders in the same container. Inspect adds the names of their programs as
// labels. Waiting is -1, because waiters of other processes are not known.
//
// A file that does not exist is free. Inspect does not create it.
func (l *Mutex) Inspect(ctx context.Context) (info locks.Info, err error) {
	const op = "inspect"
	switch {
	case ctx == nil:
		return info, l.fail(op, locks.ErrNilContext)
	case ctx.Err() != nil:
		return info, l.fail(op, ended(ctx))
	case l.client.open.Err() != nil:
		return info, l.fail(op, locks.ErrClosed)
	}
	if info, err = l.inspect(); err != nil {
		return info, l.fail(op, err)
	}
	return info, nil
}

func (l *Mutex) inspect() (info locks.Info, err error) {
	info.Waiting = -1
	f, _ := files.under(l.place.path)
	if f == nil {
		switch _, err := os.Stat(l.place.path); {
		case errors.Is(err, fs.ErrNotExist):
			return info, nil
		case err != nil:
			return info, err
		}
		if f, err = files.get(l.place, l.client.perm); err != nil {
			return info, err
		}
	}
	host, _ := os.Hostname()
	self := locks.Party{Label: fmt.Sprintf("%s/%d", host, os.Getpid()), Host: host, PID: os.Getpid()}
	party := func(o locks.Owner, token uint64) locks.Party {
		p := self
		p.Owner, p.Token = o, token
		return p
	}
	for _, o := range f.local.Queued() {
		info.Waiters = append(info.Waiters, party(o, 0))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.writer != nil && f.writer.cause == nil:
		info.Held, info.Holders = true, []locks.Party{party(f.writer.owner, f.writer.token)}
	case f.users > 0 && f.mode != unlocked:
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
	if f.dead {
		return nil // replaced a moment ago
	}
	for _, exclusive := range []bool{true, false} {
		ok, err := f.d.tryLock(exclusive)
		if err == nil && ok {
			info.Shared = info.Held
			err = f.d.unlock()
			if !info.Held || err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		info.Held = true
	}
	info.Holders = holdersOf(f.id)
	return nil
}
