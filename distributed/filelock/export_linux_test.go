package filelock

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Alarmed reports whether the file at path has an alarm that has not rung, as far as this process has heard.
func Alarmed(path string) bool {
	f, _ := files.under(path)
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	theSiren.mu.Lock()
	defer theSiren.mu.Unlock()
	return f.sight.alarm != nil && !f.sight.alarm.rung
}

// Alarmable reports whether files on the file system of path can have alarms.
func Alarmable(path string) bool { return onAlarmable(path) }

// Watches returns how many files and directories are watched.
func Watches() (files, dirs int) {
	theSiren.mu.Lock()
	defer theSiren.mu.Unlock()
	return len(theSiren.alarms), len(theSiren.dirs)
}

// SetFresh sets for how long a look counts, and returns what it was.
func SetFresh(d time.Duration) (was time.Duration) {
	was, fresh = fresh, d
	return was
}

// OnWatch has f called instead of the system call that sets a watch, which it may make, until the function is called that it
// returns.
func OnWatch(f func(watch func() (int, error)) (int, error)) (end func()) {
	set := func(add func(fd int, path string, mask uint32) (int, error)) {
		theSiren.mu.Lock()
		defer theSiren.mu.Unlock()
		inotifyAddWatch = add
	}
	set(func(fd int, path string, mask uint32) (int, error) {
		return f(func() (int, error) { return unix.InotifyAddWatch(fd, path, mask) })
	})
	return func() { set(unix.InotifyAddWatch) }
}

// PretendMounts has this process, whose siren is new, believe in mounts that are none: what is done to files is not heard of, but for
// moves in directories that are watched because of a mount below, and at is a mount, unless it is empty. The function that it returns
// tells that the table of mounts has changed.
func PretendMounts(at, nothing string) (change func() error, err error) {
	theSiren.mu.Lock()
	defer theSiren.mu.Unlock()
	if theSiren.state != sirenNew {
		return nil, errors.New("the siren has been opened")
	}
	inotifyAddWatch = func(fd int, path string, mask uint32) (int, error) {
		if mask&unix.IN_MOVED_FROM == 0 {
			mask &^= unix.IN_ONLYDIR
			path = nothing
		}
		return unix.InotifyAddWatch(fd, path, mask)
	}
	statx = func(dirfd int, path string, flags, mask int, st *unix.Statx_t) error {
		err := unix.Statx(dirfd, path, flags, mask, st)
		if err == nil && path == at {
			st.Attributes |= unix.STATX_ATTR_MOUNT_ROOT
		}
		return err
	}
	// Urgent data is what poll tells of in the same way as of a change of the table.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	theirs, err := l.Accept()
	if err != nil {
		return nil, err
	}
	f, err := theirs.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	raw, err := ours.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	openMounts = func() (int, error) { return unix.Dup(int(f.Fd())) }
	return func() (err error) {
		control := raw.Write(func(fd uintptr) bool {
			_, err = unix.SendmsgN(int(fd), []byte{0}, nil, nil, unix.MSG_OOB)
			return true
		})
		return errors.Join(control, err)
	}, nil
}

// Overflow notes that events were lost because there were too many.
func Overflow() {
	theSiren.mu.Lock()
	defer theSiren.mu.Unlock()
	theSiren.note(-1, unix.IN_Q_OVERFLOW)
}

// CloseSiren closes a descriptor of the siren, as programs do that close all they do not know.
func CloseSiren() error { return unix.Close(theSiren.epoll) }

// DeafSiren has the siren hear nothing, until the function is called that it returns.
func DeafSiren() (end func()) {
	theSiren.mu.Lock()
	defer theSiren.mu.Unlock()
	was := theSiren.epoll
	theSiren.epoll, _ = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return func() {
		theSiren.mu.Lock()
		defer theSiren.mu.Unlock()
		unix.Close(theSiren.epoll)
		theSiren.epoll = was
	}
}
