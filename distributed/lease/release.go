package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// releaser gives holds back to the store, and undoes requests of acquisitions that got no hold
// (see undo.go).
type releaser struct {
	*base
	schedule *schedule
	requests sync.Pool // of *releaseRequest: a client's own, because channels may not leave a synctest bubble

	mu        sync.Mutex
	brief     context.Context // see briefly
	briefEnd  time.Time
	unsettled map[driver.HoldID][]*sweeping // by which the store may have locks, see sweeping
	failure   error                         // of the last sweep that failed while Close waited, or nil
}

// release releases g to the store. It returns for how long other clients should have the
// opportunity to acquire the lock before a local owner asks again. The error matches
// locks.ErrLost if g was lost, or if the store does not confirm that g was held until now. Close
// waits until release returns.
func (r *releaser) release(g *grant) (yield time.Duration, err error) {
	if r.begin() {
		defer r.finish()
	}
	r.schedule.remove(g)
	if !g.release() {
		r.schedule.tell(g)
		r.sweepLapsed(g)
		return 0, g.err()
	}
	return r.persist(g)
}

// sweepLapsed sweeps g, which is lost, if sweepOf says so.
func (r *releaser) sweepLapsed(g *grant) {
	if s := r.sweepOf(g); s != nil {
		r.sweep(s)
	}
}

// sweepOf returns a sweep for g, which is lost, if the store may keep the lock for longer than g
// was to last. The store may have prolonged g without an answer, or may not have shortened g.
// sweepOf returns nil for a [driver.Session], which was told of the loss.
func (r *releaser) sweepOf(g *grant) *sweeping {
	until := g.atMost()
	if r.session == nil && g.isLapsed() && until.After(g.over()) && until.After(r.now()) {
		return &sweeping{id: g.id, until: until}
	}
	return nil
}

// releaseAnswer is the store's answer to one release.
type releaseAnswer struct {
	driver.Released
	err error
}

// persist asks the store to release g. It repeats the request until it is answered, but not for
// longer than the release timeout or g's time. After that, or after a refusal, the request is
// repeated in the background until g's time is over. Therefore the caller does not wait for the end
// of a refusal, which may be far. And the next owner gets the lock soon after a refusal has ended,
// before the end of the lease.
func (r *releaser) persist(g *grant) (yield time.Duration, err error) {
	if !g.doubt.IsZero() {
		defer func() { // a release without an answer may have found the hold
			several := g.several || err != nil
			r.sweep(&sweeping{id: g.id, queue: r.queue, until: g.doubt, late: true, ttl: g.ttl, several: several})
		}()
	}
	began := time.Now()
	limit := min(r.patience, g.end().Sub(r.now()))
	pause := 5 * time.Millisecond
	var last error
	unclear := false // an earlier request may have released the lock
	for try := 1; ; try++ {
		sent := time.Now()
		a, answered := r.once(g.id, sent, limit-sent.Sub(began), try > 1)
		switch {
		case !answered && last == nil:
			return 0, r.later(g, fmt.Errorf("no answer within %v", limit))
		case !answered:
			return 0, r.later(g, last)
		case a.err == nil && !a.Held && !unclear:
			return 0, locks.ErrLost
		case a.err == nil: // if the lock was not held, the unclear request has released it
			return yieldFor(a.Released, time.Since(sent)), nil
		case final(a.err):
			return 0, lossBy(a.err)
		case isRefusal(a.err):
			return 0, r.later(g, a.err)
		case time.Since(began)+pause > limit:
			return 0, r.later(g, a.err)
		}
		if !adapter.Sleep(r.life, pause) {
			return 0, r.later(g, a.err) // Close then counts the sweep
		}
		unclear = unclear || !errors.Is(a.err, ErrRefused)
		last, pause = a.err, min(2*pause, 250*time.Millisecond)
	}
}

// once sends one request to release id. It waits for limit at most, even if the request ignores its
// context. Without an answer by then, answered is false.
//
// The first request needs no timer of its own. Its context ends after half of the release timeout
// at most. A [driver.ReleaseHeedsDeadline] store does not outlast its context.
func (r *releaser) once(
	id driver.HoldID, sent time.Time, limit time.Duration, again bool) (a releaseAnswer, answered bool) {
	if r.heedsDeadline && !again {
		a, err := r.store.Release(r.briefly(sent), id)
		return releaseAnswer{a, err}, true
	}
	p := r.request()
	p.ctx, p.id = r.briefly(sent), id
	ctx := p.ctx
	r.jobs.add()
	go p.send()
	if !again {
		select {
		case a := <-p.answers:
			p.recycle()
			return a, true
		case <-ctx.Done():
		}
	}
	timer := time.NewTimer(limit - time.Since(sent))
	defer timer.Stop()
	select {
	case a := <-p.answers:
		p.recycle()
		return a, true
	case <-timer.C:
		return releaseAnswer{}, false
	}
}

// releaseRequest is one request to release id. A releaseRequest is used again once its answer has
// been read.
type releaseRequest struct {
	r       *releaser
	ctx     context.Context
	id      driver.HoldID
	answers chan releaseAnswer
	send    func() // sends the request and the answer, and ends a job
}

// request returns a request without an answer.
func (r *releaser) request() *releaseRequest {
	if p, ok := r.requests.Get().(*releaseRequest); ok {
		return p
	}
	p := &releaseRequest{r: r, answers: make(chan releaseAnswer, 1)}
	p.send = func() {
		defer r.finish()
		a, err := r.store.Release(p.ctx, p.id)
		p.answers <- releaseAnswer{a, err}
	}
	return p
}

// recycle permits another use of p, whose answer was read.
func (p *releaseRequest) recycle() {
	p.ctx, p.id = nil, driver.HoldID{}
	p.r.requests.Put(p)
}

// later leaves the release of g to the background, and returns the error for the caller.
func (r *releaser) later(g *grant, err error) error {
	if r.log != nil {
		r.log.Warn("lock not released yet: it ends with its lease",
			"lock", g.id.Name, "acquisition", g.id.Acquisition, "error", adapter.OfStore(nil, err))
	}
	r.sweep(&sweeping{id: g.id, until: g.atMost()})
	return lossBy(err)
}

// lossBy returns the error of a hold that may have ended before its release, because of err.
func lossBy(err error) error {
	if errors.Is(err, locks.ErrLost) {
		return err
	}
	return fmt.Errorf("%w before its release was confirmed: %w", locks.ErrLost, err)
}

// yieldFor returns the time in which other clients may acquire a lock undisturbed by this client.
// The release of the lock took the time trip.
func yieldFor(r driver.Released, trip time.Duration) time.Duration {
	if !r.Awaited {
		return 0
	}
	return min(max(tripsOfHandOver*trip, time.Millisecond), 50*time.Millisecond)
}

// briefly returns a context that ends after a quarter to half of the release timeout. The requests
// of a quarter share the context. A request without an answer leaves time to repeat it.
func (r *releaser) briefly(now time.Time) context.Context {
	d := max(r.patience/4, time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.brief == nil || r.briefEnd.Sub(now) < d {
		r.briefEnd = now.Add(2 * d)
		ctx, cancel := context.WithDeadline(r.life, r.briefEnd)
		context.AfterFunc(ctx, cancel) // at its time, or with the client
		r.brief = ctx
	}
	return r.brief
}

// close makes g lost because the client is closed, and reports whether it was held until then.
// The caller then asks the store to release g.
func (r *releaser) close(g *grant) bool {
	r.schedule.remove(g)
	if !g.lose(locks.ErrClosed) {
		r.schedule.tell(g)
		return false
	}
	return true
}
