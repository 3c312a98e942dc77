package filelock

import (
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
