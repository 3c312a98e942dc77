package leasetest

import (
	"context"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Config has a function that opens clients of the store under test, the promises of its locks,
// and its speed. Only Store or Open is needed.
type Config struct {
	// Store returns the Store of a new client, as another process would have it. Connections of
	// the client go through link, if the store has any. Store registers the client's end with tb.
	Store func(tb testing.TB, link *Link) driver.Store

	// Open is for adapters that have constructors of their own. Open returns a new client, which
	// gives opts to lease.New after its own options. Open registers the client's end with tb.
	Open func(tb testing.TB, link *Link, opts ...lease.Option) locks.Provider

	// Read, if not nil, returns the read half of the lock called name. The lock that Locker
	// returns is its write half.
	Read func(p locks.Provider, name string) locks.TryLocker

	// Semaphore, if not nil, returns the semaphore called name of a client that Open returned. Then
	// the locks of the client are its semaphores of one permit. [lease.Client.Semaphore] has the
	// same Store for both, see [Semaphores].
	Semaphore func(p locks.Provider, name string, size int64) locks.Semaphore

	// Name turns a name of letters, digits and hyphens into a name that the store permits.
	// Default: the name is left as it is, and names with other characters are tried as well. The
	// store may refuse the latter by an error.
	Name func(name string) string

	// FIFO declares that the lock goes to clients in order of arrival, if the Store is a
	// driver.Queue.
	FIFO bool

	// SpuriousTry declares that a try may be refused although the lock is free. If several clients
	// ask at once, for example, none may get a majority.
	SpuriousTry bool

	// LateLeave declares that the lock may go to a waiter that has left, for a moment: the server
	// has not ended the waiter's request yet. Other clients are refused meanwhile.
	LateLeave bool

	// EndsWithConnection declares that the server frees a lock as soon as the connection of its
	// holder ends. The holder finds out at its next renewal.
	EndsWithConnection bool

	// TTL is the lease in checks that wait for its end. Default 2 s. A store with sessions gives
	// its sessions the time of Link.TTL.
	TTL time.Duration

	// Poll is how long a waiter relies on the store's notices, see lease.WithPoll. Default 1 s.
	Poll time.Duration

	// Limit is how long a wait may take while several clients take turns and nothing fails. Only
	// a stall takes longer. A wait counts less while other requests take long as well, as on a
	// busy machine. Default 5 s.
	Limit time.Duration

	// Clients is the number of clients that take turns. Default 6.
	Clients int

	// Parallel is how many checks run at a time. Default 8. In virtual time one check runs at a
	// time.
	Parallel int

	// Timeout is how long a call may take that must return, on a busy machine. Default 30 s.
	Timeout time.Duration

	// Foreign, if not nil, puts something under the name that is not a lock. No request may
	// change it.
	Foreign func(tb testing.TB, name string)

	// Rest, if not nil, is called when all clients of a check have been closed. Rest reports with
	// tb.Error all data that the store still keeps of the lock called name, except the token.
	Rest func(tb testing.TB, name string)

	// Forget, if not nil, restarts the server of a [World] without the data that it had not stored
	// by then. A lease later at most, all is as before. Until then the server may give its locks
	// twice, and tokens again. The client still tells each holder of the loss by its next renewal,
	// or at the end of its lease. If the server has sessions, the restart must end them.
	Forget func()

	// SetClock, if not nil, sets the clock of a World's server forward by this time, which is no
	// longer than a lease, or back if it is negative. The consequences are the same as of Forget,
	// except that tokens still grow. A clock that was set back makes waiters wait for longer.
	SetClock func(by time.Duration)

	// members, if not nil, returns the names of the locks that the lock called name consists of.
	members func(name string) []string

	exact   bool // the store decides in no time, see ledger
	anyName bool // there was no Name
	virtual bool // the checks run in virtual time
}

// Semaphores is the Config.Semaphore of a Config with a Store, and of an Open that returns a
// *lease.Client.
func Semaphores(p locks.Provider, name string, size int64) locks.Semaphore {
	return p.(*lease.Client).Semaphore(name, size)
}

func (cfg Config) withDefaults() Config {
	if cfg.Open == nil {
		cfg.Open = func(tb testing.TB, link *Link, opts ...lease.Option) locks.Provider {
			c, err := lease.New(cfg.Store(tb, link), opts...)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), cfg.Timeout)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		}
	}
	if cfg.Name == nil {
		cfg.anyName = true
		cfg.Name = func(name string) string { return name }
	}
	if cfg.TTL <= 0 {
		cfg.TTL = 2 * time.Second
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if cfg.Limit <= 0 {
		cfg.Limit = 5 * time.Second
	}
	if cfg.Clients <= 0 {
		cfg.Clients = 6
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 8
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	return cfg
}
