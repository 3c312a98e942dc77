package scenarios

import (
	"context"
	"errors"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
)

var _ = register(lab.Scenario{
	Lesson: 30,
	Name:   "watchdog",
	Topic:  lab.T("Leases", "租约"),
	Title:  lab.T(`Renewed while held, and a report of the loss`, "持有期间续期，失锁时报告"),
	Question: lab.T(`How long should the lease be, if the length of the work is unknown?`,
		"不知道工作要多久，租约该设多长？"),
	Claim: lab.T(`A short lease expires while its holder is at work. A long lease makes the others wait after a crash.
Therefore a watchdog renews the lease every third of it, as long as the process lives and reaches the
server. A dead process stops renewing, and its lock is free at most one lease later.

If the holder cannot reach the server, it cannot renew the lease, and at its end the server gives the
lock to another process. The holder cannot ask whether that has happened. But it knows the time of its
last success, and therefore until when the lock is certainly its own. The library reports the loss a
margin before that moment: before another process can have the lock, not after.`,
		`租约短，持有者还在工作就到期；租约长，崩溃之后别人要等很久。所以由看门狗每隔三分之一租约时长续期一
次，只要进程活着并且能连上服务器。死去的进程不再续期，它的锁最迟在一个租约之后空闲。

持有者连不上服务器，就无法续期，到期时服务器会把锁给另一个进程。持有者无法询问这件事是否已经发生。
但它知道上一次成功的时间，因此知道锁在什么时刻之前肯定还属于自己。库会比这一时刻再提前一段余量报告失
锁：在别的进程可能得到锁之前，而不是之后。`),
	Look: lab.T(`In the first picture the holder works for longer than its lease, and the other process waits until it is
done. In the second the holder is cut off from the network in the middle of its work. First its context
is cancelled, and only then the other process gets the lock.`,
		`第一幅图中，持有者工作的时间比租约长，另一个进程一直等到它完成。第二幅图中，持有者在工作途中与网
络断开：先是它的 context 被取消，然后另一个进程才得到锁。`),
	Found: lab.T(`The lease was {{n .lease}}, and the holder kept the lock for {{n .worked}}. When it was cut off,
its context ended {{n .told}} later with the cause "{{.cause}}"; the other had the lock {{n .apart}} after that.`,
		`租约为 {{n .lease}}，持有者持有锁 {{n .worked}}。与网络断开后 {{n .told}}，它的 context 结束，原
因是「{{.cause}}」；再过 {{n .apart}}，另一个进程得到锁。`),
	Take: lab.T("Do not guess the length of the work: leave the lease to the watchdog, which is the default. Give "+
		"the context of `locks.Do`'s function to everything that the function calls, so that the work "+
		"stops when the lock is lost.",
		"不要猜测工作要多久：把租约交给看门狗，这是默认设置。把 `locks.Do` 传给函数的 context 继续传"+
			"给它所调用的一切，这样失锁时工作就会停止。"),
	Java: lab.Same(`RLock lock = redisson.getLock("order");
lock.lock();                       // %s
lock.lock(10, SECONDS);            // %s`).With(lab.T("renewed by the watchdog",
		"由看门狗续期"), lab.T("not renewed: ends by itself", "不续期：到时自行结束")),
	Run: watchdog,
})

//lab:show

// work takes d, or ends when the lock is lost.
func work(ctx context.Context, l locks.Locker, d time.Duration) error {
	return locks.Do(ctx, l, func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done(): // the cause is locks.ErrLost if the lock is lost
			return context.Cause(ctx)
		}
	})
}

//lab:end

func watchdog(_ context.Context, l *lab.Lab) error {
	s := newServer(l)
	term := lab.Pick(l, 5*time.Second, 2*time.Second) // a slow test has to renew in time
	// The margin is larger than by default, as the scenario must hold on a busy machine too.
	margin := lease.WithMargin(term / 4)
	// Only the lease of the holder matters.
	holder, other, third := s.process(l, term, margin), s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(holder, other, third)
	const name = "order"

	t := l.Timeline(lab.T("Renewed",
		"续期"), lab.T("The holder works for longer than its lease. The watchdog renews it meanwhile.",
		"持有者工作的时间比租约长，其间看门狗不断续期。"))
	first, second := t.Wrap(lab.T("lock",
		"锁"), holder.locks.Mutex(name)), t.Wrap(lab.T("lock", "锁"), other.locks.Mutex(name))
	var worked time.Duration
	has, done := make(chan struct{}), make(chan time.Time, 1)
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		if err := first.LockContext(ctx); err != nil { // a hold around the one of work
			return err
		}
		began := time.Now()
		close(has)
		err := work(ctx, first, term+term/2)
		worked = time.Since(began)
		done <- time.Now()
		return errors.Join(err, first.UnlockContext(ctx))
	})
	t.Go(lab.T("other", "另一个"), func(ctx context.Context, me *lab.Lane) error {
		<-has
		return locks.Do(ctx, second, func(context.Context) error {
			l.Check(!time.Now().Before(<-done), lab.T("while the watchdog renews, no other process gets the lock",
				"看门狗续期期间，没有别的进程得到锁"))
			me.Work(term / 10)
			return nil
		})
	})
	t.Wait()
	l.Check(worked > term, lab.T("the holder works for longer than its lease", "持有者工作的时间比租约长"))

	t = l.Timeline(lab.T("Cut off",
		"与网络断开"), lab.T("The holder cannot renew, and learns of its loss before the other gets the lock.",
		"持有者无法续期，在另一个得到锁之前得知失锁。"))
	first, second = t.Wrap(lab.T("lock",
		"锁"), holder.locks.Mutex(name)), t.Wrap(lab.T("lock", "锁"), third.locks.Mutex(name))
	var cut, told, got time.Time
	waits := make(chan struct{})
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, first, func(lost context.Context) error {
			close(waits)
			me.Work(term / 2)
			cut = time.Now()
			holder.disconnect()
			me.Mark(lab.T("is cut off", "与网络断开"))
			<-lost.Done()
			told = time.Now()
			l.Is(locks.ErrLost, context.Cause(lost), lab.T("the context of the work ends with locks.ErrLost",
				"工作的 context 以 locks.ErrLost 结束"))
			l.Observe("cause", context.Cause(lost).Error())
			me.Mark(lab.T("learns of the loss", "得知失锁"))
			return nil
		})
		me.Work(term / 10)
		l.Is(locks.ErrLost, err, lab.T("so does what Do returns", "Do 返回的也是它"))
		return nil
	})
	t.Go(lab.T("other", "另一个"), func(ctx context.Context, me *lab.Lane) error {
		<-waits
		return locks.Do(ctx, second, func(context.Context) error {
			got = time.Now()
			me.Work(term / 10)
			return nil
		})
	})
	t.Wait()
	l.Check(told.Before(got), lab.T("the holder learns of the loss before another process has the lock",
		"持有者在别的进程得到锁之前得知失锁"))
	l.Observe("lease", term)
	l.Observe("worked", worked)
	l.Observe("told", told.Sub(cut))
	l.Observe("apart", got.Sub(told))
	return nil
}
