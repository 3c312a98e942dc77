package scenarios

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
)

var _ = register(lab.Scenario{
	Lesson: 40,
	Name:   "fencing",
	Topic:  lab.T("Leases", "租约"),
	Title:  lab.T("A holder that was paused, and its stale write", "被暂停的持有者，和它过时的写入"),
	Question: lab.T(`What stops a process that does not know that its lease has expired?`,
		"进程不知道自己的租约已经到期，怎样阻止它？"),
	Claim: lab.T(`A process can stop at any point for any time: the collector runs, a virtual machine moves, a laptop is
closed. When it continues, its lease may have expired, and another process may have the lock. The next
thing that the first process does is to write.

No lock can prevent that, because the write does not ask the lock. The resource can. Every holder gets a
token, which is greater than the token of the holder before, and sends it with each write. The resource
refuses a token smaller than one that it has seen.`,
		`进程可能在任何地方停住，停多久都有可能：垃圾回收、虚拟机迁移、笔记本合上盖子。等它继续运行时，租约可
能早已到期，锁可能已归另一个进程，而它接下来要做的正是写入。

任何锁都阻止不了这件事，因为写入时不会检查锁。但资源可以阻止。每个持有者得到一个隔离令牌，它比前一个
持有者的令牌大，每次写入都带上它。资源拒绝小于已见过的令牌的令牌。`),
	Look: lab.T(`Ann is paused while she has the lock. Her lease expires, Bob gets the lock with the next token, and
writes. Then Ann continues, and writes. In the first picture the resource ignores the tokens, and Ann's
stale value stays. In the second the resource refuses it.`,
		`Ann 持有锁时被暂停。她的租约到期，Bob 得到锁和下一个令牌，并写入。随后 Ann 继续运行并写入。第一
幅图中，资源不理会令牌，Ann 过时的值留了下来。第二幅图中，资源拒绝了它。`),
	Found: lab.T(`Without a check of the tokens the resource had {{.stale}} value in the end, from a holder whose
lease had expired {{n .late}} before. With tokens, Ann came with {{.annToken}} after Bob had come with
{{.bobToken}}: her write was refused, and Bob's stayed. The hold, asked before the write, reported the loss:
{{.loss}}.`, `不检查令牌时，资源最后的值是 {{.stale}}，它来自一个租约已过期 {{n .late}} 的持有者。使用令牌时，
Bob 先带着 {{.bobToken}} 写入，Ann 后带着 {{.annToken}} 到来：她的写入被拒绝，Bob 的值保留。写入
之前询问持有状态，它报告已经失锁：{{.loss}}。`),
	Take: lab.T("Check `Hold.Err` before a step that must not happen twice: it looks at the clock, and is right "+
		"even after a pause. A gap between the check and the write remains. If even that is too much, use "+
		"`FencedMutex`, send `Hold.Token` with the write, and let the resource check it: a column in the "+
		"database, a condition of the update.",
		"在不能重复执行的步骤之前检查 `Hold.Err`：它会看时钟，即使刚从暂停中恢复也是对的。检查与写入之"+
			"间仍有空隙。如果连这也不能接受，就用 `FencedMutex`，随写入发送 `Hold.Token`，由资源检查令牌："+
			"数据库中的一列，更新语句中的一个条件。"),
	Java: lab.Same(`RFencedLock lock = redisson.getFencedLock("account");
Long token = lock.lockAndGetToken();
...
UPDATE account SET balance = ?, token = ? WHERE id = ? AND token <= ?`),
	Run: fencing,
})

//lab:show

var errStale = errors.New("a later holder was here already")

// resource is guarded by the lock. It remembers the highest number that it has seen.
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

	err := paused(l, ann, bob, "unchecked", term, lab.T("Without tokens",
		"不用令牌"), lab.T("Ann continues after Bob has written, "+
		"and overwrites what he wrote.", "Bob 写入之后 Ann 继续运行，覆盖了他写入的值。"),
		func(value string, _ uint64) error { return r.write(value, 0) })
	l.Must(err)
	l.Equal("Ann's", r.value, lab.T("the resource accepts a stale write without a token",
		"没有令牌时，资源接受过时的写入"))
	l.Observe("stale", r.value)

	err = paused(l, ann, bob, "checked", term, lab.T("With tokens",
		"使用令牌"), lab.T("Ann's token is smaller than Bob's. The "+
		"resource refuses her write.", "Ann 的令牌比 Bob 的小，资源拒绝她的写入。"), r.write)
	l.Is(errStale, err, lab.T("a stale write with a token is refused", "带令牌的过时写入被拒绝"))
	l.Equal("Bob's", r.value, lab.T("what the later holder wrote stays", "后来的持有者写入的值保留"))
	return nil
}

// paused has Ann stop while she has the lock, until Bob has had it, and returns what her write
// came to.
func paused(l *lab.Lab, ann, bob *process, name string, term time.Duration, title, desc lab.Text,
	write func(string, uint64) error) (stale error) {
	t := l.Timeline(title, desc)
	annLock := t.Wrap(lab.T("lock", "锁"), ann.locks.FencedMutex(name, lease.WithFixedTTL(term)))
	bobLock := t.Wrap(lab.T("lock", "锁"), bob.locks.FencedMutex(name))
	token := func(ctx context.Context, lock *lease.Mutex) (locks.Hold, error) { return lock.Hold(ctx) }
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
		me.Mark(lab.T("has token %d", "令牌为 %d"), annToken)
		end, _ := hold.Deadline()
		close(annHas)
		me.Is(lab.Exclusive, lab.T("is paused", "被暂停"), func() { <-bobDone })
		late := time.Since(end)
		l.Check(late > 0, lab.T("when the holder continues, its lease has expired",
			"持有者继续运行时，租约已经到期"))
		l.Observe("late", late)
		l.Is(locks.ErrLost, hold.Err(), lab.T("the hold says so, right after the pause",
			"暂停刚结束，持有状态就说明了这一点"))
		l.Observe("loss", hold.Err().Error())
		stale = write("Ann's", annToken)
		if stale != nil {
			me.Mark(lab.T("write %d is refused", "写入 %d 被拒绝"), annToken)
		} else {
			me.Mark(lab.T("writes", "写入"))
		}
		l.Is(locks.ErrLost, annLock.UnlockContext(ctx), lab.T("its unlock says so, too",
			"它的解锁也说明了这一点"))
		me.Set(lab.Running, lab.T("works", "运行"))
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
			me.Mark(lab.T("has token %d", "令牌为 %d"), bobToken)
			me.Work(term / 4)
			err = write("Bob's", bobToken)
			me.Mark(lab.T("writes", "写入"))
			me.Work(term / 4)
			return err
		})
	})
	t.Wait()
	l.Check(bobToken > annToken, lab.T("a later holder has a greater token", "后来的持有者令牌更大"))
	l.Observe("annToken", annToken)
	l.Observe("bobToken", bobToken)
	return stale
}
