package scenarios

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/redislock"
)

var _ = register(lab.Scenario{
	Lesson:   40,
	Name:     "fencing",
	Topic:    lab.T("Leases"),
	Title:    lab.T("A holder that was paused, and its stale write"),
	Question: lab.T(`What stops a process that does not know that its lease has expired?`),
	Claim: lab.T(`A process can stop at any point for any time: the collector runs, a virtual machine moves, a laptop is
closed. When it continues, its lease may have expired, and another process may have the lock. The next
thing that the first process does is to write.

No lock can prevent that, because the write does not ask the lock. The resource can. Every holder gets a
token, a number greater than that of the holder before, and sends it with each write. The resource
refuses a token smaller than one that it has seen.`),
	Look: lab.T(`Ann is paused while she has the lock. Her lease expires, Bob gets the lock with the next token, and
writes. Then Ann continues, and writes. In the first picture the resource ignores the tokens, and Ann's
stale value stays. In the second the resource refuses it.`),
	Found: lab.T(`Without a check of the tokens the resource had {{.stale}} value in the end, from a holder whose
lease had expired {{n .late}} before. With tokens, Ann came with {{.annToken}} after Bob had come with
{{.bobToken}}: her write was refused, and Bob's stayed. The hold, asked before the write, reported the loss:
{{.loss}}.`),
	Take: lab.T("Check `Hold.Err` before a step that must not happen twice: it looks at the clock, and is right " +
		"even after a pause. A gap between the check and the write remains. If even that is too much, use " +
		"`FencedMutex`, send `Hold.Token` with the write, and let the resource check it: a column in the " +
		"database, a condition of the update."),
	Java: `RFencedLock lock = redisson.getFencedLock("account");
Long token = lock.lockAndGetToken();
...
UPDATE account SET balance = ?, token = ? WHERE id = ? AND token <= ?`,
	Run: fencing,
})

//lab:show

var errStale = errors.New("a later holder was here already")

// resource is what the lock guards. It remembers the highest number that it has seen.
type resource struct {
	mu     sync.Mutex
	value  string
	newest uint64
}

func (r *resource) write(value string, token uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.newest {
		return errStale
	}
	r.newest, r.value = token, value
	return nil
}

//lab:end

func fencing(ctx context.Context, l *lab.Lab) error {
	s := newServer(l)
	term := lab.Pick(l, 2*time.Second, 500*time.Millisecond) // a slow test has to get a lock within it
	ann, bob := s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(ann, bob)
	var r resource

	err := paused(l, ann, bob, "unchecked", term, lab.T("Without tokens"), lab.T("Ann continues after Bob has written, "+
		"and overwrites what he wrote."),
		func(value string, _ uint64) error { return r.write(value, 0) })
	l.Must(err)
	l.Equal("Ann's", r.value, lab.T("the resource accepts a stale write without a token"))
	l.Observe("stale", r.value)

	err = paused(l, ann, bob, "checked", term, lab.T("With numbers"), lab.T("Ann's number is smaller than Bob's. The "+
		"resource refuses her write."), r.write)
	l.Is(errStale, err, lab.T("a stale write with a number is refused"))
	l.Equal("Bob's", r.value, lab.T("what the later holder wrote stays"))
	return nil
}

// paused has Ann stop while she has the lock, until Bob has had it, and returns what her write
// came to.
func paused(l *lab.Lab, ann, bob *process, name string, term time.Duration, title, desc lab.Text,
	write func(string, uint64) error) (stale error) {
	t := l.Timeline(title, desc)
	annLock := t.Wrap(lab.T("lock"), ann.locks.FencedMutex(name, redislock.WithFixedTTL(term)))
	bobLock := t.Wrap(lab.T("lock"), bob.locks.FencedMutex(name))
	token := func(ctx context.Context, lock *redislock.Mutex) (locks.Hold, error) { return lock.Hold(ctx) }
	annHas, bobDone := make(chan struct{}), make(chan struct{})
	var annToken, bobToken uint64
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		if err := annLock.LockContext(ctx); err != nil {
			return err
		}
		hold, err := token(ctx, ann.locks.FencedMutex(name))
		if err != nil {
			return errors.Join(err, annLock.UnlockContext(ctx))
		}
		annToken = hold.Token()
		me.Mark(lab.T("has number %d"), annToken)
		end, _ := hold.Deadline()
		close(annHas)
		me.Is(lab.Exclusive, lab.T("is paused"), func() { <-bobDone })
		late := time.Since(end)
		l.Check(late > 0, lab.T("when the holder continues, its lease has expired"))
		l.Observe("late", late)
		l.Is(locks.ErrLost, hold.Err(), lab.T("the hold says so, right after the pause"))
		l.Observe("loss", hold.Err().Error())
		stale = write("Ann's", annToken)
		if stale != nil {
			me.Mark(lab.T("write %d is refused"), annToken)
		} else {
			me.Mark(lab.T("writes"))
		}
		l.Is(locks.ErrLost, annLock.UnlockContext(ctx), lab.T("its unlock says so, too"))
		me.Set(lab.Running, lab.T("works"))
		me.Work(term / 4)
		return nil
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annHas
		defer close(bobDone)
		return locks.Do(ctx, bobLock, func(ctx context.Context) error {
			hold, err := token(ctx, bob.locks.FencedMutex(name))
			if err != nil {
				return err
			}
			bobToken = hold.Token()
			me.Mark(lab.T("has number %d"), bobToken)
			me.Work(term / 4)
			err = write("Bob's", bobToken)
			me.Mark(lab.T("writes"))
			me.Work(term / 4)
			return err
		})
	})
	t.Wait()
	l.Check(bobToken > annToken, lab.T("a later holder has a greater number"))
	l.Observe("annToken", annToken)
	l.Observe("bobToken", bobToken)
	return stale
}
