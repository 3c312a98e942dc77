package filelock

import (
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// fileID identifies a file as long as it is open somewhere.
type fileID struct{ dev, ino uint64 }

// registry has the files that this process has open. A file is in it once, whatever paths and
// clients lead to it: two descriptors in one process would exclude each other, and an owner
// would wait for itself.
//
// Lock order: the registry's mutex before a file's.
type registry struct {
	mu     sync.RWMutex
	byID   map[fileID]*file
	byPath map[string]*file
	// stale has, by path, the files that have lost the path but are still in use. stales is its
	// length.
	stale  map[string][]*file
	stales atomic.Int32
}

var files = registry{
	byID:   make(map[fileID]*file),
	byPath: make(map[string]*file),
	stale:  make(map[string][]*file),
}

// manyFiles is how many files are open before unused ones are closed, a few at a time. It
// leaves a process with a limit of 200 descriptors most of them.
const manyFiles = 64

// get returns the file at p, which it opens if need be. The file may be stale or closed when
// the caller uses it.
func (r *registry) get(p place, perm fs.FileMode) (*file, error) {
	r.mu.RLock()
	f := r.byPath[p.path]
	r.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	d, id, err := r.open(p, perm)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.byPath[p.path]; f != nil {
		d.close()
		return f, nil
	}
	f = r.byID[id]
	if f != nil {
		d.close()
	} else {
		if len(r.byID) >= manyFiles {
			r.evict(8)
		}
		f = newFile(d, id)
		r.byID[id] = f
	}
	f.paths = append(f.paths, p.path)
	r.byPath[p.path] = f
	return f, nil
}

// open opens the file at p. While the system has no descriptor left, it closes unused files and
// tries again.
func (r *registry) open(p place, perm fs.FileMode) (descriptor, fileID, error) {
	for {
		d, id, err := openFile(p, perm)
		if err == nil || !noDescriptors(err) {
			return d, id, err
		}
		r.mu.Lock()
		closed := r.evict(8)
		r.mu.Unlock()
		if closed == 0 {
			return d, id, err
		}
	}
}

// evict closes up to n unused files and returns how many it closed. r.mu is held.
func (r *registry) evict(n int) (closed int) {
	for _, f := range r.byID {
		if closed == n {
			break
		}
		if f.mu.TryLock() {
			if f.unused() {
				r.kill(f)
				closed++
			}
			f.mu.Unlock()
		}
	}
	return closed
}

// kill closes f, which is unused. Acquisitions on their way to it find it dead and ask again.
// r.mu and f.mu are held.
func (r *registry) kill(f *file) {
	f.dead = true
	f.d.close()
	delete(r.byID, f.id)
	for _, path := range f.paths {
		delete(r.byPath, path)
	}
	f.paths = nil
}

// part records that path is not f's name any more.
func (r *registry) part(path string, f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPath[path] == f {
		f.strayed.Store(true)
		delete(r.byPath, path)
		f.paths = slices.DeleteFunc(f.paths, func(p string) bool { return p == path })
		r.stale[path] = append(r.stale[path], f)
	}
	r.tidy(path)
}

// tidy removes the files that have lost path and are not in use any more, and closes those
// without another name. r.mu is held.
func (r *registry) tidy(path string) {
	left := r.stale[path][:0]
	for _, f := range r.stale[path] {
		f.mu.Lock()
		if f.dead || f.unused() {
			if !f.dead && len(f.paths) == 0 {
				r.kill(f)
			}
		} else {
			left = append(left, f)
			f.parted = true
		}
		f.mu.Unlock()
	}
	if len(left) == 0 {
		delete(r.stale, path)
	} else {
		r.stale[path] = left
	}
	r.stales.Store(int32(len(r.stale)))
}

// settle is called when a file that may have lost the name path is not held any more.
func (r *registry) settle(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy(path)
}

// under returns the files of path where an owner may have a hold: the one that has the path,
// and those that have lost it.
func (r *registry) under(path string) (f *file, stale []*file) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byPath[path], slices.Clone(r.stale[path])
}

// all returns every open file.
func (r *registry) all() []*file {
	r.mu.RLock()
	defer r.mu.RUnlock()
	fs := make([]*file, 0, len(r.byID))
	for _, f := range r.byID {
		fs = append(fs, f)
	}
	return fs
}

// closeUnused closes the unused files that have a selected name.
func (r *registry) closeUnused(selected func(path string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.byID {
		if !slices.ContainsFunc(f.paths, selected) {
			continue
		}
		f.mu.Lock()
		if f.unused() {
			r.kill(f)
		}
		f.mu.Unlock()
	}
}
