//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package shmlock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
)

// The file is one page, in the byte order of the machine. It is 0 except for these numbers of 64
// bits. The word has a cache line of its own.
const (
	magicAt     = 0
	namespaceAt = 8 // see namespace; 0 where there are none
	wordAt      = 64
	pageSize    = 4096

	magic = 0x314457534b434f4c // "LOCKSWD1" on most machines
)

// mapping is the file in memory. Every process that has it mapped keeps a shared flock on it. A
// process that can lock it exclusively knows that no other process has it mapped.
type mapping struct {
	word *atomic.Uint64
	page []byte
	file *os.File
}

var errNoWord = fmt.Errorf("%w: the file contains something other than a lock of this kind", locks.ErrForeign)

// openMapping maps the file, which it creates and fills if need be.
func openMapping(path string) (*mapping, error) {
	// Opening a device or a pipe may have effects of its own.
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", locks.ErrForeign)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) { // the error of O_CREATE if another user's file is in a folder such as /tmp
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	m, err := mapFile(f)
	if err != nil {
		f.Close()
	}
	return m, err
}

// mapFile maps the open file.
func mapFile(f *os.File) (*mapping, error) {
	ns := namespace()
	if err := share(f, ns); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() != pageSize:
		return nil, errNoWord
	}
	page, err := unix.Mmap(int(f.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	switch {
	case number(page, magicAt) != magic:
		err = errNoWord
	case number(page, namespaceAt) != ns:
		err = fmt.Errorf("%w: the lock is in use in another PID or time namespace", locks.ErrForeign)
	default:
		return &mapping{(*atomic.Uint64)(unsafe.Pointer(&page[wordAt])), page, f}, nil
	}
	unix.Munmap(page)
	return nil, err
}

func (m *mapping) close() {
	unix.Munmap(m.page)
	m.file.Close()
}

func number(page []byte, at int) uint64 { return binary.NativeEndian.Uint64(page[at:]) }

// share locks the file shared, after filling it if no other process has it mapped.
//
// A process that gets the exclusive lock is alone, and fills the file. From there to the shared
// lock there is a gap, in which another process may be alone and fill the file again, with the
// same result. All others wait until they can share.
func share(f *os.File, ns uint64) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		alone, err := flock(f, unix.LOCK_EX)
		if alone {
			err = fill(f, ns)
		}
		if err != nil {
			return err
		}
		// If this fails, the exclusive lock is gone all the same.
		ok, err := flock(f, unix.LOCK_SH)
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: another program has locked the file", locks.ErrForeign)
		}
	}
}

// flock locks the file if no other process has a conflicting lock.
func flock(f *os.File, how int) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// fill writes a free lock into the file, which no other process has mapped, unless the file has
// other contents. If the file is a lock that is held, the holder is dead: the new word says so,
// for [Mutex.Recovered].
func fill(f *os.File, ns uint64) error {
	page := make([]byte, pageSize+1)
	n, err := f.ReadAt(page, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	empty := !bytes.ContainsFunc(page, func(r rune) bool { return r != 0 })
	if n > pageSize || !empty && (n < pageSize || number(page, magicAt) != magic) {
		return errNoWord
	}
	word := number(page, wordAt)
	if word != 0 {
		word = orphan
	}
	clear(page)
	binary.NativeEndian.PutUint64(page[magicAt:], magic)
	binary.NativeEndian.PutUint64(page[namespaceAt:], ns)
	binary.NativeEndian.PutUint64(page[wordAt:], word)
	_, err = f.WriteAt(page[:pageSize], 0)
	return err
}
