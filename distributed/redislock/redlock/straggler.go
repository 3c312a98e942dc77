package redlock

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// A straggler is a request to renew a vote on a server that had not answered when the renewal was
// confirmed by other servers. Package lease takes the renewal for answered. But the server may
// carry the request out later, after a longer extension, and so make the vote end sooner. So the
// server's answer to a longer request does not count until the straggler is answered, or cannot
// come any more.

// stragglers are the stragglers of a vote on one server. vote.mu guards them.
type stragglers struct {
	underWay []*straggler
	shortest time.Duration // of those whose answer is not awaited any more
	until    time.Time     // when none of those can come any more
}

type straggler struct {
	d time.Duration // for which the request renews the vote
}

// latest is how long a request may be on its way at most, as in package lease.
const latest = 5 * time.Minute

// straggle notes a straggler on server i.
func (v *vote) straggle(i int, d time.Duration) *straggler {
	s := &straggler{d}
	v.mu.Lock()
	defer v.mu.Unlock()
	all := &v.seats[i].stragglers
	all.underWay = append(all.underWay, s)
	return s
}

// catchUp notes that the request of a straggler has ended with err.
func (v *vote) catchUp(i int, s *straggler, err error) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	all := &v.seats[i].stragglers
	all.underWay = slices.DeleteFunc(all.underWay, func(other *straggler) bool { return other == s })
	if surely(err) {
		return
	}
	if now.After(all.until) {
		all.shortest = s.d
	}
	all.shortest, all.until = min(all.shortest, s.d), now.Add(latest)
}

// lasts reports whether server i, which has confirmed a request for d, surely keeps v for d.
func (v *vote) lasts(i int, d time.Duration) bool {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	all := &v.seats[i].stragglers
	return !slices.ContainsFunc(all.underWay, func(s *straggler) bool { return s.d < d }) &&
		(now.After(all.until) || all.shortest >= d)
}

// errStraggler is why a server's answer to a renewal does not count.
var errStraggler = errors.New("an earlier request to renew for less time is without an answer")

// surely reports whether a request that has ended with err will not be carried out later: it was
// answered, or never sent.
func surely(err error) bool {
	var op *net.OpError
	return err == nil || redisport.NothingDone(err) || errors.As(err, &op) && op.Op == "dial"
}

// course is the requests of one renewal to the servers.
type course struct {
	mu    sync.Mutex
	ended []bool
	errs  []error
	after []func(err error) // what follows when the request ends, or nil
}

func newCourse(servers int) *course {
	return &course{
		ended: make([]bool, servers), errs: make([]error, servers), after: make([]func(error), servers),
	}
}

// end notes that the request to server i has ended with err.
func (c *course) end(i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[i], c.errs[i] = true, err
	if f := c.after[i]; f != nil {
		f(err)
	}
}

// leave notes stragglers of votes, which the renewal has renewed for d.
func (c *course) leave(votes []*vote, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, ended := range c.ended {
		if ended && surely(c.errs[i]) {
			continue
		}
		all := make([]*straggler, len(votes))
		for k, v := range votes {
			all[k] = v.straggle(i, d)
		}
		c.after[i] = func(err error) {
			for k, v := range votes {
				v.catchUp(i, all[k], err)
			}
		}
		if ended {
			c.after[i](c.errs[i])
		}
	}
}
