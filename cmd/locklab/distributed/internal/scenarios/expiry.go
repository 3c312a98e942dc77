package scenarios

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

var _ = register(lab.Scenario{
	Lesson: 10,
	Name:   "expiry",
	Topic:  lab.T("One key", "一个键"),
	Title:  lab.T("Set, then expire: locked for ever", "先设置再设过期时间：永远锁住"),
	Question: lab.T(`What if a process dies between acquiring the lock and setting its lease?`,
		"如果进程在获取锁之后、设置租约之前死去，会怎样？"),
	Claim: lab.T("A distributed lock has to become free by itself when its holder dies. Otherwise no process ever "+
		"gets it again. Therefore it has a lease: on Redis, the time to live of a key.\n\n"+
		"An early recipe takes two commands: `SETNX` acquires the lock, `EXPIRE` sets the lease. A "+
		"process that dies in between leaves a lock without a lease. `SET` with NX and PX does both at "+
		"once: the key either has its time to live, or does not exist.",
		"分布式锁必须在持有者死去时自行释放，否则再也没有进程能得到它。所以它有租约：在 Redis 上，就"+
			"是键的存活时间。\n\n"+
			"早期做法用两条命令：`SETNX` 获取锁，`EXPIRE` 设置租约。在两者之间死去的进程会留下一把没有"+
			"租约的锁。带 NX 和 PX 的 `SET` 一次完成两件事：键要么有存活时间，要么不存在。"),
	Look: lab.T(`Both holders crash as soon as their first command is done. In the first picture the next process asks in
vain, for several leases. In the second it gets the lock when the lease expires. The table has what is
left of the lock on the server at the moment of the crash.`,
		`两个持有者都在第一条命令完成后立即崩溃。第一幅图中，下一个进程在几个租约的时间里一直申请不到。第
二幅图中，租约到期时它得到锁。表格是崩溃那一刻服务器上留下的内容。`),
	Found: lab.T(`After SETNX and a crash the key had no time to live, and the next process asked {{times .asked}}
in vain, for {{n .inVain}}: {{n .leases}} leases. After SET with NX and PX it had one of {{n .left}}, and the
next process had the lock after {{n .waited}}.`,
		`SETNX 之后崩溃，键没有存活时间，下一个进程白白申请了 {{times .asked}}，历时 {{n .inVain}}，相当
于 {{n .leases}} 个租约。用带 NX 和 PX 的 SET，崩溃后键的存活时间还有 {{n .left}}，下一个进程在
{{n .waited}} 后得到锁。`),
	Take: lab.T("Acquire the lock and set its lease by one command, or by a script. If you find recipes with "+
		"`SETNX` and `EXPIRE`, replace them: all locks of `redislock` set both at once.",
		"用一条命令或一个脚本同时获取锁并设置租约。如果看到使用 `SETNX` 和 `EXPIRE` 的写法，就把它换"+
			"掉：`redislock` 的所有锁都同时设置两者。"),
	Java: lab.Same(`jedis.setnx(key, "locked");            // %s
jedis.expire(key, 30);                 // %s

jedis.set(key, token, SetParams.setParams().nx().px(30_000));`).With(lab.T("a crash here ...",
		"若在此处崩溃……"), lab.T("... and this never comes", "……这一句就永远不会执行")),
	Run: expiry,
})

//lab:show

// lockInTwo acquires the lock by one command, and sets its lease by another. It is wrong.
func lockInTwo(ctx context.Context, r *redis.Client, key string, lease time.Duration,
	meanwhile func() error) (bool, error) {
	ok, err := r.Do(ctx, "SETNX", key, "locked").Bool()
	if err != nil || !ok {
		return false, err
	}
	if err := meanwhile(); err != nil {
		return false, err // the process is dead, and does not send the next command
	}
	return true, r.PExpire(ctx, key, lease).Err()
}

// lockInOne does both by one command. The token identifies this holder.
func lockInOne(ctx context.Context, r *redis.Client, key, token string, lease time.Duration) (bool, error) {
	return took(r.Do(ctx, "SET", key, token, "NX", "PX", lease.Milliseconds()))
}

//lab:end

var errCrash = errors.New("crashed")

func expiry(_ context.Context, l *lab.Lab) error {
	s := newServer(l)
	short := lab.Pick(l, 250*time.Millisecond, 500*time.Millisecond)
	term := lab.Pick(l, 2*time.Second, short) // a slow test has to look at the key before its end
	const key, leases = "lock", 3
	table := lab.Table{Title: lab.T("What the crash left on the server",
		"崩溃后服务器上留下的内容"), Head: []lab.Text{lab.T("taken by",
		"获取方式"), lab.T("key",
		"键"), lab.T("value",
		"值"),
		lab.T("time to live", "存活时间")}}
	row := func(by lab.Text, left time.Duration) {
		value, err := s.Get(key)
		l.Must(err)
		life := lab.T("none", "无")
		if left > 0 {
			life = lab.Same(lab.Duration(left))
		}
		table.Rows = append(table.Rows, []lab.Text{by, lab.Same(key), lab.Same(value), life})
	}
	first, next := s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(first, next)

	crashed := make(chan struct{})
	t := l.Timeline(lab.T("SETNX, and a crash",
		"SETNX，然后崩溃"), lab.T("The holder dies before EXPIRE. The next process asks again and "+
		"again, until it stops asking.", "持有者在 EXPIRE 之前死去。下一个进程反复申请，最后放弃。"))
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		_, err := lockInTwo(ctx, first.Client, key, short, func() error { return errCrash })
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		me.Work(short / 10)
		me.Mark(lab.T("crashes before EXPIRE", "在 EXPIRE 之前崩溃"))
		l.Is(errCrash, err, lab.T("the holder dies between its two commands", "持有者在两条命令之间死去"))
		return nil
	})
	asked := 0
	var inVain time.Duration
	t.Go(lab.T("next", "下一个"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		left, there := s.left(key)
		l.Check(there && left == 0, lab.T("the key is there, and has no time to live",
			"键存在，但没有存活时间"))
		row(lab.Same("SETNX, EXPIRE"), left)
		began := time.Now()
		me.Set(lab.Waiting, lab.T("asks for lock in vain", "白白申请锁"))
		for time.Since(began) < leases*short {
			ok, err := lockInTwo(ctx, next.Client, key, short, func() error { return nil })
			if err != nil {
				return err
			}
			l.Check(!ok, lab.T("the lock never comes free, however many leases go by",
				"无论过去多少个租约，锁都不会空闲"))
			asked++
			me.Work(short / 10)
		}
		inVain = time.Since(began)
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Mark(lab.T("stops asking", "不再申请"))
		me.Work(short / 4)
		return nil
	})
	t.Wait()
	s.Del(key)

	crashed = make(chan struct{})
	var at time.Time
	t = l.Timeline(lab.T("SET with NX and PX, and a crash",
		"带 NX 和 PX 的 SET，然后崩溃"), lab.T("The key had its time to live from the first. The "+
		"next process gets the lock when it is over.", "键从一开始就有存活时间。到期时，下一个进程得到锁。"))
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		at = time.Now()
		ok, err := lockInOne(ctx, first.Client, key, "token-1", term)
		left, _ := s.left(key)
		l.Check(ok && err == nil, lab.T("a free lock is taken by one command", "一条命令就获取空闲的锁"))
		l.Check(left > 0 && left <= term, lab.T("the key has its time to live from the first",
			"键从一开始就有存活时间"))
		row(lab.Same("SET NX PX"), left)
		l.Observe("left", left)
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		me.Work(term / 10)
		me.Mark(lab.T("crashes", "崩溃"))
		return err
	})
	t.Go(lab.T("next", "下一个"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		me.Set(lab.Waiting, lab.T("asks for lock", "申请锁"))
		for {
			ok, err := lockInOne(ctx, next.Client, key, "token-2", term)
			if err != nil {
				return err
			}
			if ok {
				break
			}
			me.Work(term / 20)
		}
		waited := time.Since(at)
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		l.Check(waited >= term, lab.T("the next one has it after the lease, and not before",
			"下一个在租约到期之后才得到锁，不会提前"))
		l.Observe("waited", waited)
		me.Work(term / 4)
		return nil
	})
	t.Wait()
	l.Table(table)
	l.Observe("asked", asked)
	l.Observe("inVain", inVain)
	l.Observe("leases", leases)
	return nil
}
