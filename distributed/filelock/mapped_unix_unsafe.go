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

// layout is the contents of the file, in the byte order of the machine: the start of one page,
// of which the rest is 0.
type layout struct {
	magic atomic.Uint64 // written last
	place atomic.Uint64 // see namespace; 0 where there are none
	_     [6]uint64     // the word has a cache line of its own
	word  atomic.Uint64
}

const (
	magic    = 0x314457534b434f4c // "LOCKSWD1" on most machines
	pageSize = 4096
)

// mapping is the file in memory. Every process that has it mapped keeps a shared flock on it. A
// process that can lock it exclusively knows that no other process has it mapped.
type mapping struct {
	*layout
	mem []byte
	d   descriptor
}

var errNoWord = fmt.Errorf("%w: the file contains something other than a lock of this kind", locks.ErrForeign)

// openMapping maps the file, which it creates and fills if need be.
func openMapping(path string) (*mapping, error) {
	p, err := newPlace(path)
	if err != nil {
		return nil, err
	}
	d, _, err := files.open(p, 0o600)
	if err != nil {
		return nil, err
	}
	ns := namespace()
	m, err := mapFile(d, ns)
	if err != nil {
		d.close()
		return nil, err
	}
	switch {
	case m.magic.Load() != magic:
		err = errNoWord
	case m.place.Load() != ns:
		err = fmt.Errorf("%w: the lock is in use in another PID or time namespace", locks.ErrForeign)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// mapFile maps the open file.
func mapFile(d descriptor, ns uint64) (*mapping, error) {
	if d.readOnly {
		return nil, errReadOnly
	}
	if err := share(d, ns); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if st.Size != pageSize {
		return nil, errNoWord
	}
	mem, err := unix.Mmap(d.fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &mapping{layout: (*layout)(unsafe.Pointer(&mem[0])), mem: mem, d: d}, nil
}

// share locks the file shared, after filling it if no other process has it mapped.
//
// A process that gets the exclusive lock is alone, and fills the file. From there to the shared
// lock there is a gap, in which another process may be alone and fill the file again, with the
// same result. All others wait until they can share.
func share(d descriptor, ns uint64) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		alone, err := d.tryLock(true)
		if err != nil {
			return err
		}
		if alone {
			if err := fill(d, ns); err != nil {
				return err
			}
		}
		// If this fails, the exclusive lock is gone all the same.
		ok, err := d.tryLock(false)
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: another program has locked the file", locks.ErrForeign)
		}
	}
}

// fill writes a free lock into the file, which no other process has mapped, unless the file has
// other contents. If the file is a lock that is held, the holder is dead: the new word says so,
// for [Mapped.Recovered].
func fill(d descriptor, ns uint64) error {
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
	if n > pageSize || !empty && (n < pageSize || l.magic.Load() != magic) {
		return errNoWord
	}
	word := l.word.Load()
	if word != 0 {
		word = orphan
	}
	clear(page[:])
	l.magic.Store(magic)
	l.place.Store(ns)
	l.word.Store(word)
	_, err = d.WriteAt(page[:pageSize], 0)
	return err
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

// alive reports whether the process of the word lives. It returns true if that is not known.
func alive(word uint64) bool {
	pid, start := partsOf(word)
	if pid == 0 { // orphan
		return false
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	now, zombie, known := process(pid)
	if !known {
		return true
	}
	return !zombie && (start == 0 || now == 0 || now == start)
}
