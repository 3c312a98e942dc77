//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
)

// layout is what is in the file, in the byte order of the machine. It fills a part of the first page; the rest is 0.
type layout struct {
	magic atomic.Uint64 // written last
	place atomic.Uint64 // the PID namespace, or 0 where there are none
	_     [6]uint64     // the word has a cache line of its own
	word  atomic.Uint64
}

const (
	magic    = 0x314457534b434f4c // "LOCKSWD1" on most machines
	pageSize = 4096
)

// mapping is the file in memory. It keeps the file locked, shared with all who have it mapped, so that one who opens
// it can know that nobody else has.
type mapping struct {
	*layout
	mem []byte
	d   descriptor
}

// openMapping maps the file, and makes it and fills it if need be.
//
// Who can lock it exclusively is alone, and makes it new: whatever the word says is of processes that are dead. From there
// to the shared lock there
// is a gap, in which another one may come to be alone and do the same, which changes nothing. The others wait until they can
// share.
func openMapping(path string) (*mapping, error) {
	p, err := newPlace(path)
	if err != nil {
		return nil, err
	}
	d, _, err := openFile(p, 0o600)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*mapping, error) {
		d.close()
		return nil, err
	}
	foreign := fmt.Errorf("%w: the file has something else in it than a lock of this kind", locks.ErrForeign)
	ns := namespace()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		alone, err := d.tryLock(true)
		if err != nil {
			return fail(err)
		}
		if alone {
			if err := fill(d, ns, foreign); err != nil {
				return fail(err)
			}
		}
		// If this fails, the exclusive lock is gone all the same.
		ok, err := d.tryLock(false)
		if err != nil {
			return fail(err)
		}
		if ok {
			break
		}
		if time.Now().After(end) {
			return fail(fmt.Errorf("%w: another program has locked the file", locks.ErrForeign))
		}
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return fail(os.NewSyscallError("fstat", err))
	}
	if st.Size != pageSize {
		return fail(foreign)
	}
	mem, err := unix.Mmap(d.fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(os.NewSyscallError("mmap", err))
	}
	m := &mapping{layout: (*layout)(unsafe.Pointer(&mem[0])), mem: mem, d: d}
	switch {
	case m.magic.Load() != magic:
		m.close()
		return nil, foreign
	case m.place.Load() != ns:
		m.close()
		return nil, fmt.Errorf("%w: the lock is used in another PID namespace", locks.ErrForeign)
	}
	return m, nil
}

// fill makes the file, which nobody else has mapped, that of a free lock, unless there is something else in it.
func fill(d descriptor, ns uint64, foreign error) error {
	var page [pageSize + 1]byte
	n, err := d.ReadAt(page[:], 0)
	if n == 0 && err != nil {
		var st unix.Stat_t
		if e := retry(func() error { return unix.Fstat(d.fd, &st) }); e != nil || st.Size > 0 {
			return err
		}
	}
	l := (*layout)(unsafe.Pointer(&page[0]))
	empty := true
	for _, b := range page[:n] {
		empty = empty && b == 0
	}
	switch {
	case n > pageSize, !empty && (n < pageSize || l.magic.Load() != magic):
		return foreign
	}
	clear(page[:])
	l.magic.Store(magic)
	l.place.Store(ns)
	if _, err := d.WriteAt(page[:pageSize], 0); err != nil {
		return err
	}
	return nil
}

func (m *mapping) close() {
	unix.Munmap(m.mem)
	m.d.close()
}

// self returns the word of this process.
func self() (uint64, error) {
	pid := os.Getpid()
	if pid >= 1<<pidBits {
		return 0, fmt.Errorf("process number %d has more than %d bits", pid, pidBits)
	}
	start, _, _ := process(pid)
	return idOf(pid, start) &^ sleepers, nil
}

// alive reports whether the process lives whose word it is. If that is not known, it does.
func alive(word uint64) bool {
	pid, start := partsOf(word)
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	now, zombie, known := process(pid)
	if !known {
		return true
	}
	return !zombie && (start == 0 || now == 0 || now == start)
}
