package scenarios

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

var _ = register(lab.Scenario{
	Lesson:   10,
	Name:     "expiry",
	Topic:    lab.T("One key"),
	Title:    lab.T("Set, then expire: locked for ever"),
	Question: lab.T(`What if a process dies between acquiring the lock and setting its lease?`),
	Claim: lab.T("A distributed lock has to become free by itself when its holder dies. Otherwise no process ever " +
		"gets it again. Therefore it has a lease: on Redis, the time to live of a key.\n\n" +
		"The oldest recipe takes two commands: `SETNX` acquires the lock, `EXPIRE` sets the lease. A " +
		"process that dies in between leaves a lock without a lease. `SET` with NX and PX does both at " +
		"once: the key either has its time to live, or does not exist."),
	Look: lab.T(`Both holders crash as soon as their first command is done. In the first picture the next process asks in
vain, for several leases. In the second it gets the lock when the lease expires. The table has what is
left of the lock on the server at the moment of the crash.`),
	Found: lab.T(`After SETNX and a crash the key had no time to live, and the next process asked {{times .asked}}
in vain, for {{n .inVain}}: {{n .leases}} leases. After SET with NX and PX it had one of {{n .left}}, and the
next process had the lock after {{n .waited}}.`),
	Take: lab.T("Acquire the lock and set its lease by one command, or by a script. If you find recipes with " +
		"`SETNX` and `EXPIRE`, replace them: all locks of `redislock` set both at once."),
	Java: `jedis.setnx(key, "locked");            // a crash here ...
jedis.expire(key, 30);                 // ... and this never comes

jedis.set(key, token, SetParams.setParams().nx().px(30_000));`,
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
	table := lab.Table{Title: lab.T("What the crash left on the server"), Head: []lab.Text{lab.T("taken by"), lab.T("key"), lab.T("value"),
		lab.T("time to live")}}
	row := func(by lab.Text, left time.Duration) {
		value, err := s.Get(key)
		l.Must(err)
		life := lab.T("none")
		if left > 0 {
			life = lab.Same(lab.Duration(left))
		}
		table.Rows = append(table.Rows, []lab.Text{by, lab.Same(key), lab.Same(value), life})
	}
	first, next := s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(first, next)

	crashed := make(chan struct{})
	t := l.Timeline(lab.T("SETNX, and a crash"), lab.T("The holder dies before EXPIRE. The next process asks again and "+
		"again, until it stops asking."))
	t.Go(lab.T("holder"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		_, err := lockInTwo(ctx, first.Client, key, short, func() error { return errCrash })
		me.Set(lab.Exclusive, lab.T("has lock"))
		me.Work(short / 10)
		me.Mark(lab.T("crashes before EXPIRE"))
		l.Is(errCrash, err, lab.T("the holder dies between its two commands"))
		return nil
	})
	asked := 0
	var inVain time.Duration
	t.Go(lab.T("next"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		left, there := s.left(key)
		l.Check(there && left == 0, lab.T("the key is there, and has no time to live"))
		row(lab.Same("SETNX, EXPIRE"), left)
		began := time.Now()
		me.Set(lab.Waiting, lab.T("asks for lock in vain"))
		for time.Since(began) < leases*short {
			ok, err := lockInTwo(ctx, next.Client, key, short, func() error { return nil })
			if err != nil {
				return err
			}
			l.Check(!ok, lab.T("the lock never comes free, however many leases go by"))
			asked++
			me.Work(short / 10)
		}
		inVain = time.Since(began)
		me.Set(lab.Running, lab.T("works"))
		me.Mark(lab.T("stops asking"))
		me.Work(short / 4)
		return nil
	})
	t.Wait()
	s.Del(key)

	crashed = make(chan struct{})
	var at time.Time
	t = l.Timeline(lab.T("SET with NX and PX, and a crash"), lab.T("The key had its time to live from the first. The "+
		"next process gets the lock when it is over."))
	t.Go(lab.T("holder"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		at = time.Now()
		ok, err := lockInOne(ctx, first.Client, key, "token-1", term)
		left, _ := s.left(key)
		l.Check(ok && err == nil, lab.T("a free lock is taken by one command"))
		l.Check(left > 0 && left <= term, lab.T("the key has its time to live from the first"))
		row(lab.Same("SET NX PX"), left)
		l.Observe("left", left)
		me.Set(lab.Exclusive, lab.T("has lock"))
		me.Work(term / 10)
		me.Mark(lab.T("crashes"))
		return err
	})
	t.Go(lab.T("next"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		me.Set(lab.Waiting, lab.T("asks for lock"))
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
		me.Set(lab.Exclusive, lab.T("has lock"))
		l.Check(waited >= term, lab.T("the next one has it after the lease, and not before"))
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
