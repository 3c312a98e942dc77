package scenarios

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
)

var _ = register(lab.Scenario{
	Lesson: 20,
	Name:   "owner-check",
	Topic:  lab.T("One key", "一个键"),
	Title:  lab.T(`A delete that frees another holder's lock`, "误删他人的锁"),
	Question: lab.T(`May a holder delete the key if its work took too long?`,
		"工作超时的持有者还可以删除键吗？"),
	Claim: lab.T("Only the holder may release. But a lease may expire while its holder is still at work, and then "+
		"the key under the same name belongs to another holder. A plain `DEL` deletes it nevertheless. "+
		"The second holder's lock is gone, a third process gets the lock, and two holders work at once.\n\n"+
		"Therefore the value of the key is an identifier that no other holder has, and the release "+
		"compares it first. Comparison and deletion must be one step, or the key may change hands in "+
		"between. On Redis that is a script.",
		"只有持有者才可以释放。但持有者还在工作时租约可能已经到期，这时同名的键属于另一个持有者。普通"+
			"的 `DEL` 照样把它删除：第二个持有者的锁没了，第三个进程得到锁，于是有两个持有者同时工作。\n\n"+
			"所以键的值是其他持有者都没有的标识，释放时先作比较。比较和删除必须是一个步骤，否则键可能在其"+
			"间易主。在 Redis 上，这要用脚本完成。"),
	Look: lab.T(`Ann is still at work when her lease expires, and Bob acquires the lock. Then Ann is done. In the first
picture she deletes the key, and Cid gets the lock while Bob works. In the second the script finds Bob's
identifier and deletes nothing: Cid waits until Bob is done.`,
		`Ann 还在工作，租约就到期了，Bob 获取了锁。然后 Ann 完成工作。第一幅图中，她删除了键，Cid 在 Bob
工作期间得到锁。第二幅图中，脚本发现标识是 Bob 的，什么也不删：Cid 一直等到 Bob 完成。`),
	Found: lab.T(`With a plain DEL there were {{.most}} holders at a time. With the script there was one holder
while Ann has it, Cid waited {{n .waited}} for Bob's release, and the script returned to Ann that it had
deleted nothing. An equally late unlock of redislock returned: {{.answer}}`,
		`使用普通的 DEL，同时有 {{.most}} 个持有者。使用脚本则始终只有一个持有者，Cid 等待 Bob 释放，等了
 {{n .waited}}，脚本告诉 Ann 什么也没有删除。用 redislock 同样迟到地解锁，返回的是：{{.answer}}`),
	Take: lab.T("Never release by name alone. With `redislock` the script of every release makes the check. A "+
		"late holder gets the error `locks.ErrLost`: its work may have overlapped with another holder's.",
		"不要只凭名字释放。`redislock` 每次释放的脚本都会做这个检查。迟到的持有者得到错误 `locks.ErrLost`："+
			"它的工作可能与另一个持有者重叠过。"),
	Java: lab.Same(`// %s
String script = "if redis.call('get', KEYS[1]) == ARGV[1] then"
    + " return redis.call('del', KEYS[1]) else return 0 end";
jedis.eval(script, List.of(key), List.of(token));`).With(lab.T("wrong: jedis.del(key);",
		"错误的写法：jedis.del(key);")),
	Run: ownerCheck,
})

//lab:show

// unlockByName deletes the lock of any holder. It is wrong.
func unlockByName(ctx context.Context, r *redis.Client, key, _ string) (deleted int64, err error) {
	return r.Del(ctx, key).Result()
}

var deleteOwn = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('del', KEYS[1])
end
return 0
`)

// unlockOwn deletes the lock if it is the caller's.
func unlockOwn(ctx context.Context, r *redis.Client, key, token string) (deleted int64, err error) {
	return deleteOwn.Run(ctx, r, []string{key}, token).Int64()
}

//lab:end

func ownerCheck(ctx context.Context, l *lab.Lab) error {
	s := newServer(l)
	term := lab.Pick(l, 80*time.Millisecond, 150*time.Millisecond)
	ann, bob, cid := s.process(l, time.Minute), s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(ann, bob, cid)
	most, deleted, _ := lateRelease(l, s, term, [3]*process{ann, bob, cid}, lab.T("Deleted by name",
		"按名字删除"), lab.T("Ann "+
		"deletes Bob's lock, and Cid gets in.", "Ann 删除了 Bob 的锁，Cid 得以进入。"), unlockByName)
	l.Equal(int64(1), deleted, lab.T("a plain DEL deletes another holder's lock", "普通的 DEL 会删除他人的锁"))
	l.Equal(int64(2), most, lab.T("after it, two are inside", "之后有两个同时在内"))
	l.Observe("most", most)
	most, deleted, waited := lateRelease(l, s, term, [3]*process{ann, bob, cid}, lab.T("Deleted by its owner only",
		"只由所有者删除"),
		lab.T("The script leaves Bob's lock alone. Cid waits for Bob.",
			"脚本不动 Bob 的锁。Cid 等待 Bob。"), unlockOwn)
	l.Equal(int64(0), deleted, lab.T("the script deletes nothing that is not the caller's",
		"脚本不删除不属于调用者的东西"))
	l.Equal(int64(1), most, lab.T("after it, Bob is alone", "之后只有 Bob 在内"))
	l.Observe("waited", waited)

	short := lab.Pick(l, 2*time.Second, 300*time.Millisecond) // a slow test has to get a lock within it
	mine := ann.locks.Mutex("other", lease.WithFixedTTL(short))
	l.Must(mine.LockContext(ctx))
	time.Sleep(short)
	theirs := bob.locks.Mutex("other")
	l.Must(theirs.LockContext(ctx))
	err := mine.UnlockContext(ctx)
	l.Is(locks.ErrLost, err, lab.T("redislock returns an error to a holder that releases too late",
		"对释放得太迟的持有者，redislock 返回错误"))
	held, err2 := cid.locks.Mutex("other").TryLockContext(ctx)
	l.Check(!held && err2 == nil, lab.T("and leaves the lock to its present holder", "并把锁留给现在的持有者"))
	l.Must(theirs.UnlockContext(ctx))
	l.Observe("answer", errors.Unwrap(err).Error()+".")
	return nil
}

// lateRelease lets Ann release after Bob got the lock. It returns how many of Bob and Cid were
// inside at a time, how many keys Ann deleted, and how long Cid waited.
func lateRelease(l *lab.Lab, s *server, term time.Duration, all [3]*process, title, desc lab.Text,
	unlock func(context.Context, *redis.Client, string, string) (int64,
		error)) (most, deleted int64, waited time.Duration) {
	const key = "lock"
	const long = time.Minute // for holders whose lease must not expire
	s.Del(key)
	var in inside
	t := l.Timeline(title, desc)
	annHas, bobHas := make(chan struct{}), make(chan struct{})
	annDone, cidTried := make(chan struct{}), make(chan struct{})
	cidIn := make(chan struct{})
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		if ok, err := lockInOne(ctx, all[0].Client, key, "Ann's token", term); err != nil || !ok {
			return errors.Join(errors.New("the lock is not free"), err)
		}
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		close(annHas)
		me.Work(term)
		me.Mark(lab.T("the lease is over", "租约到期"))
		me.Set(lab.Exclusive, lab.T("believes to have lock", "以为持有锁"))
		<-bobHas
		me.Work(term / 2)
		var err error
		deleted, err = unlock(ctx, all[0].Client, key, "Ann's token")
		me.Mark(lab.T("releases: %d deleted", "释放：删除了 %d 个"), deleted)
		me.Set(lab.Running, lab.T("works", "运行"))
		close(annDone)
		me.Work(term / 2)
		return err
	})
	take := func(ctx context.Context, me *lab.Lane, p *process, token string, each func()) error {
		me.Set(lab.Waiting, lab.T("waits for lock", "等待锁"))
		for {
			ok, err := lockInOne(ctx, p.Client, key, token, long)
			if err != nil || ok {
				me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
				return err
			}
			if each != nil {
				each()
			}
			me.Work(term / 20)
		}
	}
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annHas
		if err := take(ctx, me, all[1], "Bob's token", nil); err != nil {
			return err
		}
		in.enter()
		close(bobHas)
		select { // until it is known what came of Ann's release
		case <-cidIn:
			me.Work(term / 2)
		case <-cidTried:
			me.Work(term)
		}
		in.leave()
		_, err := unlockOwn(ctx, all[1].Client, key, "Bob's token")
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 2)
		return err
	})
	t.Go(lab.Same("Cid"), func(ctx context.Context, me *lab.Lane) error {
		<-annDone
		began, tries := time.Now(), 0
		err := take(ctx, me, all[2], "Cid's token", func() {
			if tries++; tries == 3 {
				close(cidTried)
			}
		})
		if err != nil {
			return err
		}
		waited = time.Since(began)
		in.enter()
		close(cidIn)
		me.Work(term)
		in.leave()
		_, err = unlockOwn(ctx, all[2].Client, key, "Cid's token")
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 4)
		return err
	})
	t.Wait()
	return in.most.Load(), deleted, waited
}
