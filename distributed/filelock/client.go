package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
)

// DefaultMaxLocalHandoffs is how often in a row a lock goes from one holder to the next in one process.
const DefaultMaxLocalHandoffs = 64

// Client gives locks by name, each of which is a file in one directory. It is safe for concurrent use. [Client.Close]
// ends it.
type Client struct {
	dir    string // absolute
	perm   fs.FileMode
	cohort int
	tokens bool
	trust  bool
	watch  time.Duration

	open context.Context // until Close
	shut context.CancelFunc

	mu   sync.Mutex // orders begin and Close
	jobs sync.WaitGroup
}

var _ locks.Provider = (*Client)(nil)

// Option changes how [New] and [Open] do their work.
type Option func(*Client)

// WithMaxLocalHandoffs sets how often in a row a lock may go from one holder to the next in this process, without others being given the
// opportunity to take it; [DefaultMaxLocalHandoffs] if not given. With 0 the file is unlocked each time.
func WithMaxLocalHandoffs(n int) Option { return func(p *Client) { p.cohort = n } }

// WithTokens has each exclusive holder get a fencing token: a counter in the lock file, which each one counts. It
// costs a read and a write for each. The file must be writable and have nothing else in it, or taking the lock fails. Tokens
// strictly increase among all who use this option as long as the file exists and the system does not crash.
func WithTokens() Option { return func(p *Client) { p.tokens = true } }

// WithWatch has a goroutine look every d, for each hold whose [locks.Hold.Lost] was asked for, such as by [locks.Do], whether
// somebody has deleted or replaced the lock file. Without it the channel is closed only when [locks.Hold.Err] or
// somebody else in this process finds that out.
func WithWatch(d time.Duration) Option { return func(p *Client) { p.watch = d } }

// WithTrustedFiles is for lock files that surely nobody deletes, renames or replaces while programs use them, such as in a
// directory that others cannot write to. It saves an acquisition the question whether the file still has its name, half of
// what a pair of calls costs. Where it was wrong, two may hold the
// lock.
func WithTrustedFiles() Option { return func(p *Client) { p.trust = true } }

// WithPerm sets with which permissions lock files are made, less the umask of the process; 0644 if not given. Who may open a
// file, if only
// to read it, can lock it.
func WithPerm(perm fs.FileMode) Option { return func(p *Client) { p.perm = perm } }

func newClient(dir string, opts []Option) (*Client, error) {
	if dir == "" { // would be wherever the process happens to be, and no two processes would agree
		return nil, errors.New("empty path")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Client{dir: abs, perm: 0o644, cohort: DefaultMaxLocalHandoffs}
	for _, o := range opts {
		o(p)
	}
	switch {
	case p.cohort < 0:
		return nil, fmt.Errorf("cohort of %d", p.cohort)
	case p.watch < 0:
		return nil, fmt.Errorf("watch every %v", p.watch)
	case p.perm&^fs.ModePerm != 0:
		return nil, fmt.Errorf("permissions %v are not permissions alone", p.perm)
	case strings.ContainsRune(abs, 0):
		return nil, errNUL
	}
	p.open, p.shut = context.WithCancel(context.Background())
	return p, nil
}

// New returns a Client of the locks in dir, which it makes if it does not exist, for everybody to look into and for the
// user of this
// process to write to. If the directory is deleted later, acquisitions fail with an error that matches [fs.ErrNotExist].
//
// Names of locks may be any text: what they become is one element of a path, which no name can leave, and which differs for names
// that differ. [Client.Path] tells it.
func New(dir string, opts ...Option) (*Client, error) {
	p, err := newClient(dir, opts)
	if err == nil {
		err = os.MkdirAll(p.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("filelock: New(%q): %w", dir, err)
	}
	return p, nil
}

// Path returns the path of the file of the lock called name. A name of lower-case letters, digits, '-', '_' and '.' can be
// told in it: "orders" is
// orders.lock. Other bytes are %XX, and from a name that is too long a hash is made.
func (p *Client) Path(name string) string { return filepath.Join(p.dir, fileName(name)) }

func (p *Client) lock(name, path string, kind mode) *Mutex {
	l := &Mutex{p: p, name: name, kind: kind}
	if l.place, l.bad = newPlace(path); l.bad != nil {
		l.place.path = path
	}
	return l
}

// Lock returns the exclusive lock called name.
func (p *Client) Mutex(name string) *Mutex { return p.lock(name, p.Path(name), exclusive) }

// Locker returns the exclusive lock called name. It is a [*Mutex], and the write half of [Client.RWMutex].
func (p *Client) Locker(name string) locks.TryLocker { return p.Mutex(name) }

// ReadWriteLocker returns the lock called name as a read-write lock.
func (p *Client) RWMutex(name string) *RWMutex {
	return &RWMutex{read: p.lock(name, p.Path(name), shared), write: p.Mutex(name)}
}

// begin counts a job for which Close waits, or reports false because it has begun.
func (p *Client) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open.Err() != nil {
		return false
	}
	p.jobs.Add(1)
	return true
}

// Close ends all holds that were begun by p, and has all who wait by it return [locks.ErrClosed]. Holders find their holds lost,
// before the files are unlocked. Files that nobody else uses are closed. It waits for nothing that could take time, and
// ctx is there for the sake of likeness. Only the first call does anything.
//
// A holder in this process keeps others in this process waiting until it has unlocked; other processes get the lock at once.
func (p *Client) Close(context.Context) error {
	p.mu.Lock()
	first := p.open.Err() == nil
	p.shut()
	p.mu.Unlock()
	if !first {
		return nil
	}
	for _, f := range files.all() {
		f.mu.Lock()
		f.lose(locks.ErrClosed, func(q *possession) bool { return q.p == p })
		f.mu.Unlock()
	}
	p.jobs.Wait()
	files.closeUnused(func(path string) bool { return path == p.dir || filepath.Dir(path) == p.dir })
	return nil
}

// File is the lock of one file, as [Open] gives it: its exclusive half, and both halves as a read-write lock.
type File struct {
	*Mutex
	read *Mutex
}

var _ locks.ReadWriteLocker = (*File)(nil)

// Open returns the lock of the file at path, which is made if it does not exist, but not its directory. The file may be one
// that has something in it, or may
// only be read: it is locked, not touched, but for [WithTokens]. If it is no regular file, taking the lock fails with an
// error matching
// [locks.ErrForeign].
//
// All programs that lock the file with flock exclude one another: flock(1) of util-linux, and most libraries.
func Open(path string, opts ...Option) (*File, error) {
	fail := func(err error) (*File, error) { return nil, fmt.Errorf("filelock: Open(%q): %w", path, err) }
	p, err := newClient(path, opts)
	if err != nil {
		return fail(err)
	}
	f := &File{Mutex: p.lock(path, p.dir, exclusive), read: p.lock(path, p.dir, shared)}
	if f.bad != nil {
		return fail(f.bad)
	}
	if _, err := files.get(f.place, p.perm); err != nil {
		return fail(err)
	}
	return f, nil
}

// ReadLocker returns the shared half. It is a [*Mutex].
func (f *File) ReadLocker() locks.TryLocker { return f.read }

// WriteLocker returns the exclusive half, which f is itself. It is a [*Mutex].
func (f *File) WriteLocker() locks.TryLocker { return f.Mutex }

// Close ends all holds that were begun by f, see [Client.Close].
func (f *File) Close(ctx context.Context) error { return f.p.Close(ctx) }
