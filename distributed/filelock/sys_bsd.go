//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import "golang.org/x/sys/unix"

// place is a path.
type place struct{ path string }

func newPlace(path string) (place, error) {
	_, err := unix.BytePtrFromString(path)
	return place{path}, err
}

// id returns the file that the path leads to.
func (p place) id() (fileID, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Stat(p.path, &st) })
	return fileID{uint64(st.Dev), uint64(st.Ino)}, err
}

func (d descriptor) flock(how int) error { return unix.Flock(d.fd, how) }

func markable(int) bool                        { return false }
func (descriptor) mark()                       {}
func (descriptor) unmark()                     {}
func (descriptor) marked() (waits, known bool) { return false, false }
