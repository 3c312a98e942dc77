package filelock

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An alarm tells that a path may lead to another file than it did, at the price of a system call that finds nothing to do. It is
// set by watches of inotify, one on the file and one on each directory that leads to it, and by a look at the table of mounts:
//
//	what happens                             what rings
//	the file is unlinked                     IN_ATTRIB of the file, whose number of links changes
//	another one is renamed over it           the same
//	it is renamed, or exchanged              IN_MOVE_SELF of the file
//	a directory above is renamed             IN_MOVE_SELF of the directory
//	a directory above is deleted             it is empty then: the file was unlinked before. And IN_DELETE_SELF
//	something is mounted over any of them,
//	moved or unmounted                       the table of mounts of the namespace, and IN_UNMOUNT
//	what a mount hides is renamed, which     IN_MOVED_FROM of the directory above it
//	only another namespace can do
//	the queue of events is full              IN_Q_OVERFLOW: all alarms
//	chmod, touch, link, and other noise      IN_ATTRIB of the file: a false alarm, after which somebody looks
//
// A path with a symbolic link in it gets none, nor one through a file system that is not on the list below, nor one where
// inotify has no watch left, or may not watch. There each acquisition looks.
//
// # Why no replacement is missed
//
// The watches are set from the root down, and then somebody looks whether the path leads to the file. Let no alarm ring from
// the first watch on. The first directory had its name when it got its watch, and has had it since. So the second watch went to
// what the second directory of the path was, and is, and so on: what is watched is what the path leads through.
//
// The kernel queues an event before the system call returns that causes it. It even does so before it
// takes a name away from an unlinked file, and while it keeps others from making a file or directory under a name that it took
// from a renamed one. A mount is told of under the lock under which it appears. So who replaces a file while he has it locked,
// and then unlocks it, which is the only way to do so that excludes everybody at any time, has rung the alarm before: whoever
// has the lock after that finds it rung. The locks within the kernel that both of them take see to it that the one sees what
// the other has written.
//
// In one case a look would see more: when somebody who has not locked the file renames another one over it, or exchanges the two,
// the new one has the name shortly before the event is queued. Who gets the old one's lock in that time is as one who got it
// shortly before, which nothing prevents: that one keeps the lock of a file without a name, and [locks.Hold.Err] tells.
//
// # Several goroutines
//
// There is one queue in a process. To ask takes what has come out of it, even if it is another's: so who asks has the mutex,
// and gives it back after everything that came is noted in the alarms. Who finds the mutex taken does not wait: he looks.
type alarm struct {
	wd   int32 // the watch of the file
	rung bool
}

// siren is the queue of all alarms of this process: three descriptors, for as long as it runs.
type siren struct {
	mu     sync.Mutex
	state  sirenState
	epoll  int // tells whether anything came from the two others
	watch  int // inotify
	mounts int // mountinfo of this namespace
	alarms map[int32]*alarm
	dirs   map[int32]struct{} // watches of directories
}

type sirenState uint8

const (
	sirenNew sirenState = iota
	sirenOn
	sirenBroken // there is none, and will not be
)

var theSiren = siren{alarms: make(map[int32]*alarm), dirs: make(map[int32]struct{})}

const (
	ofFile = unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_DONT_FOLLOW
	// What a directory is watched for is added to what it is watched for already.
	ofDir   = unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_DONT_FOLLOW | unix.IN_ONLYDIR | unix.IN_MASK_ADD
	ofMount = ofDir | unix.IN_MOVED_FROM | unix.IN_DELETE
	// manyDirs and manyAlarms are how many directories and files are watched before all watches are given up.
	manyDirs   = 512
	manyAlarms = 4096
)

// alarmable reports whether names on a file system change by nothing but the system calls of this machine that do so, which
// tell inotify. Btrfs is missing for its subvolumes, which have calls of their own.
func alarmable(magic uint32) bool {
	switch magic {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// What tests replace.
var (
	inotifyAddWatch = unix.InotifyAddWatch
	statx           = unix.Statx
	openMounts      = func() (fd int, err error) {
		return unix.Open("/proc/thread-self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
)

// setAlarm returns an alarm for the place of the file id, which is to be looked at after that. If there is none, it
// reports whether that is only because somebody else is busy with the siren.
func (d descriptor) setAlarm(p place, id fileID) (a *alarm, busy bool) {
	s := &theSiren
	if !d.marks { // nor flock itself is this kernel's alone
		return nil, false
	}
	if !s.mu.TryLock() {
		return nil, true
	}
	defer s.mu.Unlock()
	if s.state == sirenNew {
		s.start()
	}
	if !s.drain() {
		return nil, s.state == sirenOn
	}
	if len(s.dirs) >= manyDirs || len(s.alarms) >= manyAlarms {
		s.clear()
	}
	if !s.watchWay(p.path) {
		return nil, false
	}
	wd, err := inotifyAddWatch(s.watch, p.path, ofFile)
	if err != nil {
		return nil, false
	}
	if old := s.alarms[int32(wd)]; old != nil { // nobody relies on it: a file has one
		old.rung = true
	}
	a = &alarm{wd: int32(wd)}
	s.alarms[a.wd] = a
	// What is watched now is the file itself only if the path does not end in a link.
	if st, ok := lookAt(p.path); !ok || st.id != id {
		s.remove(a)
		return nil, false
	}
	return a, false
}

// start opens the siren, or leaves that to somebody later. s.mu is held.
func (s *siren) start() {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return
	}
	mounts, err := openMounts()
	if err != nil {
		unix.Close(epoll)
		unix.Close(watch)
		return
	}
	s.epoll, s.watch, s.mounts = epoll, watch, mounts
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, watch, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(watch)})
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, mounts, &unix.EpollEvent{Events: unix.EPOLLPRI, Fd: int32(mounts)})
	}
	if err != nil {
		s.close()
		return
	}
	s.state = sirenOn
}

// shut closes the siren for good. s.mu is held.
func (s *siren) shut() {
	s.state = sirenBroken
	s.ringAll()
	clear(s.dirs)
	s.close()
}

func (s *siren) close() {
	unix.Close(s.epoll)
	unix.Close(s.watch)
	unix.Close(s.mounts)
}

// watchWay sets watches on the directories that lead to path, which is absolute and clean, from the root down. s.mu is held.
func (s *siren) watchWay(path string) bool {
	root, ok := lookAt("/")
	if !ok || !root.dir || !onAlarmable("/") {
		return false
	}
	above := "/"
	for end := 1; ; {
		next := strings.IndexByte(path[end:], '/')
		here := path
		if next >= 0 {
			here = path[:end+next]
		}
		before, ok := lookAt(here)
		if !ok {
			return false
		}
		// A mount hides a directory, or a file, that only the directory above can be watched for. It is so before the look that
		// counts.
		if before.mount && !s.watchDir(above, ofMount) {
			return false
		}
		if next >= 0 && !s.watchDir(here, ofDir) {
			return false
		}
		now, ok := lookAt(here)
		if !ok || now != before || now.dir != (next >= 0) || now.mount && !onAlarmable(here) {
			return false
		}
		if next < 0 {
			return true
		}
		above = here
		end += next + 1
	}
}

func (s *siren) watchDir(path string, mask uint32) bool {
	wd, err := inotifyAddWatch(s.watch, path, mask)
	if err == nil {
		s.dirs[int32(wd)] = struct{}{}
	}
	return err == nil
}

// seen is what is found under a path.
type seen struct {
	id         fileID
	dir, mount bool
}

// lookAt looks what is under path, without following a link at its end. It fails where mounts cannot be told.
func lookAt(path string) (seen, bool) {
	var st unix.Statx_t
	err := retry(func() error {
		return statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_TYPE, &st)
	})
	if err != nil || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return seen{}, false
	}
	return seen{
		id:    fileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino},
		dir:   st.Mode&unix.S_IFMT == unix.S_IFDIR,
		mount: st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}, true
}

func onAlarmable(path string) bool {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Statfs(path, &st) })
	return err == nil && alarmable(uint32(st.Type))
}

// silent reports whether the alarm has not rung, and if it is not known to be silent, whether it has. Whoever holds the lock of
// the file calls it.
func (a *alarm) silent() (silent, rung bool) {
	s := &theSiren
	if !s.mu.TryLock() {
		return false, false
	}
	defer s.mu.Unlock()
	known := s.drain()
	return known && !a.rung, a.rung
}

// drain notes what has come. It reports false if that is not known. s.mu is held.
//
// Nothing waits here, and hardly ever is there anything: so the runtime is not told of the system call. It does not
// block on what another thread does in the same epoll, because none does.
func (s *siren) drain() bool {
	if s.state != sirenOn {
		return false
	}
	var came [2]unix.EpollEvent
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT,
		uintptr(s.epoll), uintptr(unsafe.Pointer(&came)), uintptr(len(came)), 0, 0, 0)
	switch {
	case errno == 0 && n == 0:
		return true
	case errno == unix.EINTR:
		return false
	case errno != 0:
		s.shut()
		return false
	}
	for _, e := range came[:n] {
		switch {
		case e.Fd == int32(s.mounts):
			s.ringAll()
		case e.Fd != int32(s.watch) || !s.read():
			s.shut()
			return false
		}
	}
	return true
}

// read notes the events of inotify. It reports false if they cannot be read. s.mu is held.
func (s *siren) read() bool {
	var room [4096]byte
	for {
		n, err := unix.Read(s.watch, room[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil || n == 0:
			return false
		}
		for b := room[:n]; len(b) > 0; {
			if len(b) < unix.SizeofInotifyEvent {
				return false
			}
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			name := binary.NativeEndian.Uint32(b[12:])
			if name > math.MaxUint16 || len(b) < unix.SizeofInotifyEvent+int(name) {
				return false
			}
			b = b[unix.SizeofInotifyEvent+name:]
			s.note(wd, mask)
		}
	}
}

// note notes an event. s.mu is held.
func (s *siren) note(wd int32, mask uint32) {
	if a := s.alarms[wd]; a != nil {
		a.rung = true
		delete(s.alarms, wd)
		if mask&unix.IN_IGNORED == 0 {
			unix.InotifyRmWatch(s.watch, uint32(wd))
		}
		return
	}
	switch _, dir := s.dirs[wd]; {
	case dir && mask&unix.IN_IGNORED != 0:
		delete(s.dirs, wd)
		s.ringAll()
	case dir || mask&unix.IN_Q_OVERFLOW != 0:
		s.ringAll()
	}
	// Anything else is of a watch that was given up.
}

// ringAll rings all alarms. s.mu is held.
func (s *siren) ringAll() {
	for _, a := range s.alarms {
		a.rung = true
		unix.InotifyRmWatch(s.watch, uint32(a.wd))
	}
	clear(s.alarms)
}

// clear gives up all watches. s.mu is held.
func (s *siren) clear() {
	s.ringAll()
	for wd := range s.dirs {
		unix.InotifyRmWatch(s.watch, uint32(wd))
	}
	clear(s.dirs)
}

// remove gives the alarm's watch up. s.mu is held.
func (s *siren) remove(a *alarm) {
	if s.alarms[a.wd] == a {
		delete(s.alarms, a.wd)
		unix.InotifyRmWatch(s.watch, uint32(a.wd))
	}
	a.rung = true
}

// end gives the alarm up. It does not wait either, because whoever sets an alarm may have to wait for a file system. Then the
// watch stays until it rings for nobody, or all are given up.
func (a *alarm) end() {
	s := &theSiren
	if s.mu.TryLock() {
		s.remove(a)
		s.mu.Unlock()
	}
}
