package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jucgo/locks"
)

// DefaultMaxLocalHandoffs is how often in a row a lock goes from one holder to the next in one
// process, unless [WithMaxLocalHandoffs] says otherwise.
const DefaultMaxLocalHandoffs = 64

// Client provides locks by name. Each lock is a file in one directory. A Client is safe for
// concurrent use. [Client.Close] ends it.
type Client struct {
	dir      string // absolute
	perm     fs.FileMode
	handoffs int
	tokens   bool
	watch    time.Duration

	open context.Context // until Close
	shut context.CancelFunc
}

var _ locks.Provider = (*Client)(nil)

// Option configures [New] and [Open].
type Option func(*Client)

// WithMaxLocalHandoffs sets how often in a row a lock may go from one holder to the next in
// this process while other processes wait. The default is [DefaultMaxLocalHandoffs]. With 0,
// every release unlocks the file.
func WithMaxLocalHandoffs(n int) Option { return func(c *Client) { c.handoffs = n } }

// WithTokens gives each exclusive holder a fencing token, from a counter in the lock file. It costs
// one read and one write an acquisition. The file must be writable, or acquisitions fail with an
// error that matches [fs.ErrPermission]. The file must contain nothing but the counter, or
// acquisitions fail with [locks.ErrForeign]. Tokens strictly increase among all users of this
// option, as long as the file exists and the system does not crash.
func WithTokens() Option { return func(c *Client) { c.tokens = true } }

// WithWatch makes the process check every d whether the lock file was deleted or replaced, for each
// hold whose [locks.Hold.Lost] is in use, for example by [locks.Do]. Without it, Lost is closed
// only when [locks.Hold.Err] or another call in this process notices.
func WithWatch(d time.Duration) Option { return func(c *Client) { c.watch = d } }

// WithPerm sets the permissions of new lock files, before the umask of the process. The default
// is 0644. Any user who can open a file, if only for reading, can lock it.
func WithPerm(perm fs.FileMode) Option { return func(c *Client) { c.perm = perm } }

func newClient(dir string, opts []Option) (*Client, error) {
	if dir == "" { // would be the working directory, which differs between processes
		return nil, errors.New("empty path")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &Client{dir: abs, perm: 0o644, handoffs: DefaultMaxLocalHandoffs}
	for _, o := range opts {
		o(c)
	}
	switch {
	case c.handoffs < 0:
		return nil, fmt.Errorf("WithMaxLocalHandoffs(%d): must be 0 or more", c.handoffs)
	case c.watch < 0:
		return nil, fmt.Errorf("WithWatch(%v): must be 0 or more", c.watch)
	case c.perm&^fs.ModePerm != 0:
		return nil, fmt.Errorf("WithPerm(%v): must have permission bits only", c.perm)
	case strings.ContainsRune(abs, 0):
		return nil, errors.New("the path contains a NUL byte")
	}
	c.open, c.shut = context.WithCancel(context.Background())
	return c, nil
}

// New returns a Client of the locks in dir. It creates dir with permissions 0755 if it does not
// exist. If dir is deleted later, acquisitions fail with an error that matches
// [fs.ErrNotExist].
//
// A lock's name may be any text. It becomes one element of a path: no name leaves dir, and
// different names have different files. See [Client.Path].
func New(dir string, opts ...Option) (*Client, error) {
	c, err := newClient(dir, opts)
	if err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("filelock: New(%q): %w", dir, err)
	}
	return c, nil
}

// Path returns the path of the file of the lock called name. Lower-case letters, digits, '-',
// '_' and '.' stay readable: "orders" is orders.lock. Other bytes become %XX, and a name that
// is too long ends in a hash.
func (c *Client) Path(name string) string { return filepath.Join(c.dir, fileName(name)) }

func (c *Client) lock(name, path string, m mode) *Mutex {
	return &Mutex{client: c, name: name, path: path, mode: m}
}

// Mutex returns the exclusive lock called name.
func (c *Client) Mutex(name string) *Mutex { return c.lock(name, c.Path(name), exclusive) }

// Locker returns the exclusive lock called name. It is a [*Mutex], and the write half of
// [Client.RWMutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// RWMutex returns the read-write lock called name.
func (c *Client) RWMutex(name string) *RWMutex {
	return &RWMutex{read: c.lock(name, c.Path(name), shared), write: c.Mutex(name)}
}

// Close ends all holds that c began, and makes all of its waiters return [locks.ErrClosed]. A
// hold is marked lost before its file is unlocked. Close also closes the files of c that are
// not in use. It does not block and ignores ctx. Only the first call has an effect.
//
// A hold that ended this way keeps other goroutines of this process waiting until its owner
// calls UnlockContext. Other processes can acquire the lock at once.
func (c *Client) Close(context.Context) error {
	if c.open.Err() != nil {
		return nil
	}
	c.shut()
	files.mu.RLock()
	for _, f := range files.byID {
		f.mu.Lock()
		f.lose(locks.ErrClosed, func(h *hold) bool { return h.client == c })
		f.mu.Unlock()
	}
	files.mu.RUnlock()
	files.closeUnused(math.MaxInt, func(path string) bool { return path == c.dir || filepath.Dir(path) == c.dir })
	return nil
}
