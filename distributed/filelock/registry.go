package filelock

import (
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// registry has the files that this process has open. A file is in the registry once, whatever paths
// and clients lead to it: two descriptors in one process would exclude each other, and an owner
// would wait for itself.
//
// Lock order: the registry's mutex before a file's.
type registry struct {
	mu     sync.RWMutex
	byID   map[fileID]*file
	byPath map[string]*file // the file to which a path leads
	// strays are files in use to which one of their paths no longer leads.
	strays []*file
	// changes counts the changes that can make an answer of under wrong.
	changes atomic.Uint64
}

var files = registry{byID: make(map[fileID]*file), byPath: make(map[string]*file)}

// manyFiles is how many files are open before unused files are closed, a few at a time. With a
// limit of 200 descriptors, most of them stay free for the program.
const (
	manyFiles = 64
	few       = 8
)

// get opens the file at path, unless that is open. The file may be a stray or closed when the
// caller uses it.
func (r *registry) get(path string, perm fs.FileMode) (*file, error) {
	d, id, err := openFile(path, perm)
	for err != nil && noDescriptors(err) && r.closeUnused(few, nil) > 0 {
		d, id, err = openFile(path, perm)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.byPath[path]
	if f == nil {
		f = r.byID[id]
	}
	if f != nil {
		d.Close()
	} else {
		if len(r.byID) >= manyFiles {
			r.evict(few, nil)
		}
		f = newFile(d, id)
		r.byID[id] = f
	}
	r.byPath[path] = f
	if !slices.Contains(f.paths, path) {
		f.paths = append(f.paths, path)
	}
	return f, nil
}

// under returns the files of path where an owner may have a hold: the file to which path leads, and
// strays to which path has led.
func (r *registry) under(path string) (f *file, strays []*file) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.strays {
		if slices.Contains(s.paths, path) {
			strays = append(strays, s)
		}
	}
	return r.byPath[path], strays
}

// part records that path does not lead to f any more.
func (r *registry) part(path string, f *file) {
	r.mu.Lock()
	if r.byPath[path] == f {
		delete(r.byPath, path)
		r.changes.Add(1)
		r.strays = append(r.strays, f)
	}
	r.mu.Unlock()
	r.tidy()
}

// tidy removes the strays that are not in use any more, and closes the files to which no path
// leads.
func (r *registry) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strays = slices.DeleteFunc(r.strays, func(f *file) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.closed && !f.unused() {
			return false
		}
		f.paths = slices.DeleteFunc(f.paths, func(path string) bool { return r.byPath[path] != f })
		if !f.closed && len(f.paths) == 0 {
			r.close(f)
		}
		return true
	})
}

// closeUnused closes up to most unused files with a selected path, or any path if selected is
// nil. It returns how many it closed.
func (r *registry) closeUnused(most int, selected func(path string) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evict(most, selected)
}

// evict is closeUnused with r.mu held.
func (r *registry) evict(most int, selected func(path string) bool) (closed int) {
	for _, f := range r.byID {
		if closed < most && (selected == nil || slices.ContainsFunc(f.paths, selected)) && f.mu.TryLock() {
			if f.unused() {
				r.close(f)
				closed++
			}
			f.mu.Unlock()
		}
	}
	return closed
}

// close closes f, which is unused. Acquisitions on their way to f find it closed, and ask again.
// r.mu and f.mu are held.
func (r *registry) close(f *file) {
	f.closed = true
	f.d.Close()
	r.changes.Add(1)
	delete(r.byID, f.id)
	for _, path := range f.paths {
		if r.byPath[path] == f {
			delete(r.byPath, path)
		}
	}
}
