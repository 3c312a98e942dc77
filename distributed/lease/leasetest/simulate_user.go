package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// user is a goroutine of a process that uses locks again and again.
type user struct {
	*process
	i      int
	random *rand.Rand
}

// permitsOf is the size of a semaphore in a life.
const permitsOf = 3

func (u *user) work() {
	l := u.life
	for !l.calming.Load() && u.ctx.Err() == nil {
		l.thinks(time.Duration(u.random.ExpFloat64() * float64(l.plan.pace)))
		if u.proceed() != nil {
			return
		}
		u.turn(l.names[u.random.IntN(len(l.names))], false)
	}
	for _, name := range l.names {
		if u.ctx.Err() == nil && l.calming.Load() {
			u.turn(name, true)
		}
	}
}

// chance is true once in n times.
func (u *user) chance(n int) bool { return u.random.IntN(n) == 0 }

// turn acquires the lock, relies on it, and releases it. In the calm it does so without haste.
func (u *user) turn(name string, calm bool) {
	l := u.life
	began := time.Now()
	owner := locks.WithOwner(u.ctx, locks.NewOwner())
	ctx, cancel := owner, context.CancelFunc(func() {})
	brief := !calm && u.chance(3)
	if brief {
		ctx, cancel = context.WithTimeout(owner, time.Duration(u.random.Int64N(int64(l.ttl))))
	}
	defer cancel()
	left := new(atomic.Int64)
	ctx = context.WithValue(ctx, leftKey{}, left)
	v := &possession{u: u, name: name, many: 1, asked: began}
	try := !calm && u.chance(4)
	var size int64
	var unlock func() error
	var lock locks.TryLocker
	ok := true
	var err error
	if l.cfg.Semaphore != nil {
		s := l.cfg.Semaphore(u.provider, name, permitsOf)
		size, v.many = permitsOf, 1+u.random.Int64N(permitsOf)
		var p locks.Permits
		if try {
			p, ok, err = s.TryAcquireContext(ctx, v.many)
		} else {
			p, err = s.AcquireContext(ctx, v.many)
		}
		if p != nil {
			v.hold = p
			unlock = func() error { return p.ReleaseContext(owner) }
		}
	} else {
		lock = u.provider.Locker(name)
		if v.shared = l.cfg.Read != nil && u.chance(2); v.shared {
			lock = l.cfg.Read(u.provider, name)
		}
		if try {
			ok, err = lock.TryLockContext(ctx)
		} else {
			err = lock.LockContext(ctx)
		}
		unlock = func() error { return lock.UnlockContext(owner) }
	}
	v.began = time.Now()
	if u.proceed() != nil {
		return
	}
	if err != nil || !ok {
		left.Store(int64(l.now()))
		if waited := time.Since(began); try && waited > wakes && l.cfg.exact && u.healthy(began) {
			l.breaks("a try does not wait", fmt.Sprintf("%q is refused after %v", name, waited), u.process)
		}
		u.failed(err, ctx, name, began, calm)
		return
	}
	if lock != nil {
		if leased, is := lock.(locks.Leased); is {
			if v.hold, err = leased.Hold(owner); err != nil {
				l.breaks("the holder has a hold", err.Error(), u.process)
			}
		}
	}
	l.enter(v, size)
	over := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	defer close(over)
	if v.hold != nil {
		beside.Go(func() { u.watchLoss(v, over) })
	}
	u.rely(v, lock, owner, size, calm, &beside)
	u.giveBack(v, lock, owner, unlock, &beside)
}

// failed looks whether an acquisition has failed for a reason.
func (u *user) failed(err error, ctx context.Context, name string, began time.Time, calm bool) {
	if err == nil || ctx.Err() != nil || u.ctx.Err() != nil || u.life.ended() {
		return
	}
	u.event("user %d does not get %q: %v", u.i, name, err)
	closing := u.closing.Load() > 0
	switch {
	case errors.Is(err, locks.ErrClosed):
		if !closing {
			u.life.breaks("a call fails for a reason", err.Error(), u.process)
		}
	case u.healthy(began) && u.life.cfg.exact:
		u.life.breaks("a call fails for a reason", err.Error(), u.process)
	case calm:
		u.life.pause(10 * time.Millisecond)
		u.turn(name, true)
	}
}

// watchLoss looks whether the hold is lost for a reason, if it is lost before its time.
func (u *user) watchLoss(v *possession, over chan struct{}) {
	select {
	case <-v.hold.Lost():
	case <-over:
		return
	}
	l := u.life
	l.lost.Add(1)
	ends, limited := v.hold.Deadline()
	u.event("user %d: the hold of %q is lost", u.i, v.name)
	if u.closing.Load() > 0 || l.ended() {
		return
	}
	if l.cfg.exact && !v.extended.Load() && u.healthy(v.asked) && !l.wasForced(v.name, v.began) {
		l.breaks("a hold lasts while nothing fails", v.String(), u.process)
	}
	if !limited || !time.Now().Before(ends.Add(-time.Millisecond)) {
		return
	}
	u.mu.Lock()
	// A store with a queue may tell of an earlier hold of the same acquisition, whose answer came
	// too late.
	told := slices.ContainsFunc(l.members(v.name), func(name string) bool { return !u.causes[name].Before(v.asked) })
	u.mu.Unlock()
	if !told && !l.wasForced(v.name, v.began) {
		l.breaks("a hold that is lost before its time was lost in the store",
			fmt.Sprintf("%s is lost %v before its end", v, time.Until(ends)), u.process)
	}
}

// rely uses the hold for some time, as a holder does: it enters the lock again, and looks whether
// the hold is lost.
func (u *user) rely(v *possession, lock locks.TryLocker, owner context.Context, size int64, calm bool, beside *sync.WaitGroup) {
	l := u.life
	long := time.Duration(u.random.ExpFloat64() * float64(l.plan.relies))
	if calm {
		long = min(long, 5*time.Millisecond)
	} else if u.chance(20) {
		long = time.Duration(u.random.Int64N(int64(3 * l.ttl)))
	}
	until := time.Now().Add(long)
	if !calm && lock != nil && !v.shared && u.chance(6) { // re-enters
		if err := lock.LockContext(owner); err == nil {
			defer func() {
				if u.proceed() == nil {
					_ = lock.UnlockContext(owner)
				}
			}()
		}
	}
	for step := 0; ; step++ {
		if u.proceed() != nil {
			return
		}
		l.checks(v.name, size)
		if v.hold != nil {
			l.ledger.lasts(v)
			gone := memberLost(lock, owner)
			err := v.hold.Err()
			if err == nil && gone != nil {
				l.breaks("a hold of several locks is lost with each of them", fmt.Sprintf("%s is valid: %v", v, gone), u.process)
			}
			if err != nil {
				v.leave()
				select {
				case <-v.hold.Lost():
				default:
					if errors.Is(err, locks.ErrLost) {
						l.breaks("a lost hold has told its holder", v.String(), u.process)
					}
				}
				break
			}
		}
		left := time.Until(until)
		if left <= 0 || l.calming.Load() && !calm || u.ctx.Err() != nil {
			break
		}
		if step == 0 && !calm {
			u.meddle(v, lock, owner, beside)
		}
		l.pause(min(left, l.ttl/7))
	}
}

// memberLost returns the loss of a lock that lock consists of, as a Multi does, or nil.
func memberLost(lock locks.TryLocker, owner context.Context) error {
	several, ok := lock.(interface{ Unwrap() []locks.TryLocker })
	if !ok {
		return nil
	}
	for _, member := range several.Unwrap() {
		if hold, err := member.(locks.Leased).Hold(owner); err == nil && hold.Err() != nil {
			return hold.Err()
		}
	}
	return nil
}

// meddle does something beside the hold.
func (u *user) meddle(v *possession, lock locks.TryLocker, owner context.Context, beside *sync.WaitGroup) {
	l := u.life
	if v.hold != nil && u.chance(5) {
		d := time.Duration(u.random.Int64N(int64(2*l.ttl))) + time.Millisecond
		v.extended.Store(true)
		if u.chance(2) {
			_ = v.hold.Extend(owner, d)
		} else {
			beside.Go(func() { u.extend(v, owner, d) })
		}
	}
	if lock == nil || v.shared {
		return
	}
	type forcer interface {
		ForceUnlock(ctx context.Context) (bool, error)
	}
	if f, ok := lock.(forcer); ok && l.cfg.Read == nil && u.chance(100) {
		ctx, cancel := context.WithTimeout(owner, l.ttl)
		defer cancel()
		broken, err := f.ForceUnlock(ctx)
		u.event("user %d frees %q by force: %v, %v", u.i, v.name, broken, err)
	}
	if i, ok := lock.(locks.Inspector); ok && u.chance(20) {
		ctx, cancel := context.WithTimeout(owner, l.ttl)
		defer cancel()
		_, _ = i.Inspect(ctx)
	}
}

// extend extends the hold while it may be given back.
func (u *user) extend(v *possession, owner context.Context, d time.Duration) {
	if u.proceed() != nil {
		return
	}
	err := v.hold.Extend(owner, d)
	if at := v.gaveBack.Load(); err == nil && at > 0 && time.Duration(at) < u.life.now() {
		u.life.breaks("a hold that was given back is over for its owner", "Extend returns nil for "+v.String(), u.process)
	}
}

// giveBack releases the hold, and looks whether it is over then.
func (u *user) giveBack(v *possession, lock locks.TryLocker, owner context.Context, unlock func() error, beside *sync.WaitGroup) {
	l := u.life
	if u.proceed() != nil {
		return
	}
	lost := func() bool { // or about to be
		ends, limited := v.hold.Deadline()
		return v.hold.Err() != nil || limited && time.Until(ends) < l.ttl/10
	}
	lostBefore := v.hold != nil && lost()
	if v.hold != nil && u.chance(8) { // an extension is under way
		v.extended.Store(true)
		d := time.Duration(u.random.Int64N(int64(2*l.ttl))) + time.Millisecond
		beside.Go(func() { u.extend(v, owner, d) })
		l.pause(time.Duration(u.random.IntN(1000)) * time.Microsecond)
		if u.proceed() != nil {
			return
		}
		lostBefore = lostBefore || lost()
	}
	v.leave()
	v.gaveBack.Store(int64(l.now()))
	var err error
	if u.chance(4) { // another goroutine of the owner
		done := make(chan struct{})
		go func() { err = unlock(); close(done) }()
		<-done
	} else {
		err = unlock()
	}
	if u.dead.Load() || l.ended() {
		return
	}
	u.event("user %d gives %q back: %v", u.i, v.name, err)
	switch {
	case u.closing.Load() > 0 && (err == nil || errors.Is(err, locks.ErrLost) || errors.Is(err, locks.ErrNotHeld)):
	case err != nil && !errors.Is(err, locks.ErrLost):
		l.breaks("an unlock that fails is a loss", err.Error(), u.process)
	case err != nil && !lostBefore && l.cfg.exact && u.healthy(v.began) && !l.wasForced(v.name, v.began):
		l.breaks("a loss that is told was one", err.Error(), u.process)
	}
	if v.hold == nil {
		return
	}
	if errors.Is(err, locks.ErrLost) {
		l.ledger.loses(v)
	}
	if err == nil && l.cfg.exact && u.healthy(v.began) && l.ledger.denied(v) {
		l.breaks("an unlock tells of a loss", v.String(), u.process)
	}
	if v.hold.Err() == nil {
		l.breaks("a hold that was given back is over for its owner", "Err is nil: "+v.String(), u.process)
	}
	if err == nil && lock != nil && u.chance(4) {
		if err := lock.UnlockContext(owner); !errors.Is(err, locks.ErrNotHeld) {
			l.breaks("a hold that was given back is over for its owner", fmt.Sprintf("another unlock returns %v", err), u.process)
		}
	}
}

// asksRaw sends requests of several acquisitions, as no client does: in any order, and for locks
// that the acquisition does not have. The ledger judges the answers.
func (p *process) asksRaw() {
	l := p.life
	random := p.random(0)
	r := p.opened[len(p.opened)-1]
	var serials atomic.Uint64
	queue := optional[driver.Queue](r)
	batches := optional[driver.BatchReleaser](r)
	prober := optional[driver.ContentionProber](r)
	inspector, breaker := optional[driver.Inspector](r), optional[driver.Breaker](r)
	mine := make([]driver.HoldID, 4)
	fresh := func(i int) {
		id := fmt.Sprintf("leasetest-%d-%d", p.slot, p.incarnation)
		if known := r.identified(); known != "" {
			id = known
		}
		name, serial := l.names[random.IntN(len(l.names))], strconv.FormatUint(identity.Serial(&serials), 10)
		if other := l.ledger.holder(r.key(name)); other != "" && random.IntN(8) == 0 {
			serial = other // the number of another client's acquisition
		}
		mine[i] = driver.HoldID{Name: name, Acquisition: id + ":" + serial}
	}
	for i := range mine {
		fresh(i)
	}
	request := func(id driver.HoldID) driver.Request {
		req := driver.Request{HoldID: id, TTL: l.ttl}
		if l.cfg.Semaphore != nil {
			req.Size, req.Permits = permitsOf, 1
		}
		return req
	}
	look := func(id driver.HoldID) { // until there is an answer
		for range 5 {
			ctx, cancel := context.WithTimeout(p.ctx, l.ttl/2)
			_, err := r.Lookup(ctx, request(id))
			cancel()
			if err == nil {
				return
			}
			l.pause(l.ttl / 8)
		}
	}
	var foreign string
	if l.cfg.Foreign != nil && l.cfg.exact {
		foreign = l.cfg.Name("no-lock")
		l.cfg.Foreign(quiet{l.TB, l}, foreign)
	}
	for p.ctx.Err() == nil && !l.calming.Load() {
		if l.plan.service {
			l.thinks(time.Duration(random.ExpFloat64() * float64(l.plan.pace)))
		} else {
			l.pause(time.Duration(random.ExpFloat64() * float64(min(l.plan.pace, l.ttl/20))))
		}
		ctx, cancel := context.WithTimeout(p.ctx, l.ttl/2)
		i := random.IntN(len(mine))
		id := mine[i]
		switch random.IntN(12) {
		case 0, 1, 2:
			var beside sync.WaitGroup
			if random.IntN(2) == 0 { // two requests of one acquisition are under way, and a release
				beside.Go(func() {
					time.Sleep(time.Millisecond)
					_, _ = r.Acquire(ctx, request(id))
				})
				other := mine[random.IntN(len(mine))]
				beside.Go(func() { _, _ = r.Release(ctx, other) })
			}
			if _, err := r.Acquire(ctx, request(id)); err != nil {
				look(id)
			}
			beside.Wait()
		case 3:
			_, _ = r.Lookup(ctx, request(id))
		case 4:
			_, _ = r.Renew(ctx, slices.Clone(mine), l.ttl)
		case 5, 6:
			var beside sync.WaitGroup
			if random.IntN(2) == 0 { // two requests to release are under way, and others ask
				beside.Go(func() {
					time.Sleep(500 * time.Microsecond)
					_, _ = r.Release(ctx, id)
				})
				other := mine[random.IntN(len(mine))]
				beside.Go(func() {
					time.Sleep(1200 * time.Microsecond)
					_, _ = r.Acquire(ctx, request(other))
				})
			}
			_, err := r.Release(ctx, id)
			beside.Wait()
			if err == nil && random.IntN(2) == 0 {
				look(id)
			}
			if random.IntN(2) == 0 {
				fresh(i)
			}
		case 7:
			if queue != nil {
				if _, err := r.Enqueue(ctx, request(id)); err != nil {
					look(id)
				}
			}
		case 8:
			if queue != nil {
				_ = r.Leave(ctx, id)
			}
		case 9:
			switch {
			case batches != nil:
				_, _ = r.ReleaseAll(ctx, slices.Clone(mine))
			case foreign != "":
				_, err := r.Acquire(ctx, request(driver.HoldID{Name: foreign, Acquisition: id.Acquisition + "0"}))
				if err == nil {
					l.breaks("nothing but locks is touched", "Acquire of what is no lock succeeds", p)
				}
			}
		case 10:
			if prober != nil {
				_, _ = r.Contended(ctx, id.Name)
			}
		case 11:
			if inspector != nil {
				_, _ = r.Inspect(ctx, id.Name)
			}
			if breaker != nil && l.cfg.Semaphore == nil && l.cfg.Read == nil && random.IntN(8) == 0 {
				_, _ = r.Break(ctx, id.Name)
			}
		}
		cancel()
	}
	for _, id := range mine {
		if queue != nil {
			_ = r.Leave(l.ctx, id)
		}
		_, _ = r.Release(l.ctx, id)
	}
	if optional[driver.Session](r) != nil { // with what late requests have taken
		l.ledger.ends(p)
		p.grave.bury()
	}
}
