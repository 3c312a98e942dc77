package filelock

import (
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// fileID tells one file from every other as long as it is open somewhere.
type fileID struct{ dev, ino uint64 }

// registry has the files that this process has open. There is one of each, whatever paths and providers lead to it: two
// descriptors of one process would exclude each other, and an owner would wait for itself.
//
// Its mutex may be held when a file's is taken, not the other way round.
type registry struct {
	mu     sync.RWMutex
	byID   map[fileID]*file
	byPath map[string]*file
	// stale has, by path, the files that had the name and have it no longer, but are held still. stales is how many paths.
	stale  map[string][]*file
	stales atomic.Int32
}

var files = registry{
	byID:   make(map[fileID]*file),
	byPath: make(map[string]*file),
	stale:  make(map[string][]*file),
}

// crowd is how many files are open before some that nobody uses are closed.
const crowd = 256

// get returns the file that is, or was until now, under p. It may be dead when the caller comes to use it.
func (r *registry) get(p place, perm fs.FileMode) (*file, error) {
	r.mu.RLock()
	f := r.byPath[p.path]
	r.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	d, id, err := openFile(p, perm)
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
		r.evict()
		f = newFile(d, id)
		r.byID[id] = f
	}
	f.paths = append(f.paths, p.path)
	r.byPath[p.path] = f
	return f, nil
}

// evict closes a few files that nobody uses, if there are many. r.mu is held.
func (r *registry) evict() {
	if len(r.byID) < crowd {
		return
	}
	looked, closed := 0, 0
	for _, f := range r.byID {
		if f.mu.TryLock() {
			if f.unused() {
				r.kill(f)
				closed++
			}
			f.mu.Unlock()
		}
		if looked++; looked == crowd || closed == 8 {
			return
		}
	}
}

// kill closes f, which nobody uses. Those on their way to it find it dead, and ask again. r.mu and f.mu are held.
func (r *registry) kill(f *file) {
	f.dead = true
	f.d.close()
	delete(r.byID, f.id)
	for _, path := range f.paths {
		delete(r.byPath, path)
	}
	f.paths = nil
}

// part notes that path is not f's name any more.
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

// tidy forgets the files that had the name path, and closes those that have no other, if they are not in use any more.
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

// settle is called when a file that may have lost the name path has become free.
func (r *registry) settle(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy(path)
}

// under returns the files of path where an owner may have a hold: the one that has the name, and those that had it.
func (r *registry) under(path string) (f *file, stale []*file) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byPath[path], slices.Clone(r.stale[path])
}

// all returns every file that is open.
func (r *registry) all() []*file {
	r.mu.RLock()
	defer r.mu.RUnlock()
	fs := make([]*file, 0, len(r.byID))
	for _, f := range r.byID {
		fs = append(fs, f)
	}
	return fs
}

// closeUnused closes the files that nobody uses and that have a name which selects.
func (r *registry) closeUnused(which func(path string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.byID {
		if !slices.ContainsFunc(f.paths, which) {
			continue
		}
		f.mu.Lock()
		if f.unused() {
			r.kill(f)
		}
		f.mu.Unlock()
	}
}
