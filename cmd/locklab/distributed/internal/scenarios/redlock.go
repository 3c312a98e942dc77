package scenarios

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

var _ = register(lab.Scenario{
	Lesson: 80,
	Name:   "redlock",
	Topic:  lab.T("Several servers", "多台服务器"),
	Title: lab.T("Redlock: a majority of servers, and what it rests on",
		"红锁（Redlock）：多数服务器，以及它的前提"),
	Question: lab.T("Can a lock outlive the server that it is on?", "锁所在的服务器没了，锁还能继续存在吗？"),
	Claim: lab.T(`One server is one point of failure. A replica does not help: it learns of a lock later than the holder,
and may be promoted in between. Redlock takes several independent masters. A process that sets the same
key on more than half of them, well within the lease, has the lock. Any two majorities have a server in
common, and that server gives the key to one process.

A minority may fail. A server may even come back without its data, as long as the holder has a majority
without that server. Redlock rests on three conditions: a server that lost its locks stays away until
all of them have expired; no clock jumps; no process is paused past its lease. The third condition is
the weak point of every lease, but other locks have a fencing token against it. Redlock has none:
counters on independent servers have no common order.`,
		`只有一台服务器，就有单点故障。副本没有用：它得知锁的时间比持有者晚，可能恰好在其间被提升为主节点。
红锁用几个相互独立的主节点：进程在明显短于租约的时间内，在半数以上的节点上设置了同一个键，就得到
锁。任意两个多数派都有一台共同的服务器，而这台服务器只把键给一个进程。

少数服务器可以失效。一台服务器甚至可以在丢失数据之后回来，只要不算这一台，持有者仍有多数。红锁依赖三
个条件：丢了锁的服务器，要等其上所有的锁都到期才回来；时钟不跳变；进程的暂停不超过租约。第三个条
件是所有租约的弱点，但其他锁有隔离令牌来应对。红锁没有令牌：独立服务器上的计数器没有共同的顺序。`),
	Look: lab.T(`The lane of the servers shows how many of them run. The holder continues while a majority runs, and gets
a report of its loss when it does not. The other process asks too, and gets the lock after the lease,
when enough servers are back. In the later pictures all servers run. All five have voted for Ann, so one
server that loses its data makes no difference. If three lose their data at once, or their clocks jump,
Bob gets the lock while Ann has it. In the last picture Ann is paused, and there is no token by which the
resource could refuse her write.`,
		`服务器的泳道显示有多少台在运行。多数在运行时，持有者继续工作；不再有多数时，它会得知已经失锁。另
一个进程也在申请，租约过后、足够多的服务器恢复时，它得到锁。后面几幅图中，所有服务器都在运行。五
台都把票投给了 Ann，所以一台丢失数据没有影响。如果三台同时丢失数据，或者它们的时钟跳变，Bob 就会
在 Ann 持有锁时也得到锁。最后一幅图中，Ann 被暂停，而没有令牌可供资源拒绝她的写入。`),
	Found: lab.T(`With {{.two}} of {{.servers}} servers the holder could not renew. It learned of the loss {{n .told}} after
the third had stopped, with the cause "{{.cause}}". The other asked {{times .asked}} in vain, the last time
with the answer "{{.answer}}", and had the lock {{n .apart}} after that. When {{.forgot}}
servers lost their locks at once, there were {{.most}} holders, and the first one's hold reported it only when
it was released. The token of a hold was {{.token}}, and the stale write of a holder that had been paused
stayed: {{.stale}} value.`,
		`{{.servers}} 台服务器只剩 {{.two}} 台时，持有者无法续期。第三台停止之后 {{n .told}}，它得知已经
失锁，原因是「{{.cause}}」。另一个进程白白申请了 {{times .asked}}，最后一次的答复是「{{.answer}}」，
再过 {{n .apart}} 得到锁。{{.forgot}} 台服务器同时丢失锁时，有 {{.most}} 个持有者，而第一个直到
释放时才得知。持有状态中的令牌是 {{.token}}；被暂停的持有者的过时写入留了下来：值为 {{.stale}}。`),
	Take: lab.T(`Redlock makes a lock more available, not more certain. Let servers write each change to disk before they
answer, or stay away for the longest lease after a restart. Let clocks be slewed, never set. If two
holders at a time do harm, use a lock with a token and a resource that checks it, or a store that agrees
before it answers: etcd, ZooKeeper, a database.`,
		`红锁让锁更可用，而不是更可靠。让服务器在答复之前把每次改动写入磁盘，或者重启之后等最长的租约过去
再回来。时钟只能逐步校正，不能直接改。如果同时有两个持有者会造成危害，就用带令牌的锁和检查令牌
的资源，或者用先达成一致再答复的存储：etcd、ZooKeeper、数据库。`),
	Java: lab.Same(`RLock lock = new RedissonRedLock(
    a.getLock("order"), b.getLock("order"), c.getLock("order"));
lock.lock();`),
	Run: majority,
})

//lab:show

// onMajority returns locks that belong to the process that has them on more than half of the
// masters. Each of those is a server of its own: no replica, and no part of a cluster.
func onMajority(masters []redis.UniversalClient, opts ...lease.Option) (*redlock.Client, error) {
	return redlock.New(masters, redislock.WithLeaseOptions(opts...))
}

// quorum is the number of servers of n that make a majority. Two majorities have at least one in
// common.
func quorum(n int) int { return n/2 + 1 }

//lab:end

// masters are servers that know nothing of each other.
type masters []*server

// have returns how many of them have a lock.
func (m masters) have(name string) (n int) {
	for _, s := range m {
		if _, ok := s.left(name); ok {
			n++
		}
	}
	return n
}

// forget restarts the masters at once after a crash, without their data.
func (m masters) forget(l *lab.Lab) {
	for _, s := range m {
		s.Close()
		s.FlushAll()
		s.start(l)
	}
}

// voter is a process with locks on all of them.
type voter struct {
	clients []redis.UniversalClient
	locks   *redlock.Client
}

func (m masters) voter(l *lab.Lab, opts ...lease.Option) *voter {
	silence()
	v := new(voter)
	for _, s := range m {
		v.clients = append(v.clients, redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1,
			DisableIdentity: true, Protocol: 2}))
	}
	var err error
	v.locks, err = onMajority(v.clients, opts...)
	l.Must(err)
	return v
}

func (m masters) end(all ...*voter) {
	for _, v := range all {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = v.locks.Close(ctx) // What is still held is of no interest any more.
		cancel()
		for _, c := range v.clients {
			_ = c.Close()
		}
	}
	for _, s := range m {
		s.Close()
	}
}

func majority(_ context.Context, l *lab.Lab) error {
	const servers = 5
	var m masters
	for range servers {
		m = append(m, newServer(l))
	}
	l.Observe("servers", servers)
	term := lab.Pick(l, 4*time.Second, 2*time.Second) // a slow test has to vote in a tenth of it
	short := []lease.Option{lease.WithTTL(term), lease.WithMargin(term / 4)}
	long := lease.WithTTL(time.Minute) // is not over, nor renewed, while the scenario runs
	holder, other, ann, bob := m.voter(l, short...), m.voter(l, short...), m.voter(l, long), m.voter(l, long)
	defer m.end(holder, other, ann, bob)
	table := lab.Table{Title: lab.T("What the lock stands, and what it does not", "红锁经得起什么，经不起什么"),
		Head: []lab.Text{lab.T("what happens",
			"发生的事"), lab.T("servers that have the lock", "拥有锁的服务器"), lab.T("another gets it",
			"他人得到锁"), lab.T("the holder",
			"持有者")}}
	row := func(what lab.Text, have int, another, told lab.Text) {
		table.Rows = append(table.Rows, []lab.Text{what, lab.T("%d of %d",
			"%d / %d").With(have, servers), another, told})
	}

	stopped(l, m, holder, other, term, row)
	one := failure(l, m, ann, bob, "one", lab.T("One forgets", "一台遗忘"), lab.T("one forgets", "一台遗忘"),
		lab.T("One server comes back empty. Bob gets its vote, and no more: he is refused.",
			"一台服务器回来时是空的。Bob 只得到它这一票，因此被拒绝。"), false,
		func() { m[:1].forget(l) })
	row(lab.T("one comes back empty", "一台空着回来"), one, lab.T("no", "否"), lab.T("continues", "继续"))
	three := failure(l, m, ann, bob, "three", lab.T("Three forget at once",
		"三台同时遗忘"), lab.T("three forget at once",
		"三台同时遗忘"),
		lab.T("Three servers come back empty while the lock is held. They make a majority for Bob.",
			"锁被持有时，三台服务器空着回来。对 Bob 来说，它们构成多数。"), true,
		func() { m[:quorum(servers)].forget(l) })
	row(lab.T("three come back empty at once",
		"三台同时空着回来"), three, lab.T("at once",
		"立即"), lab.T("learns of the loss at its next renewal, or by its release",
		"在下次续期或释放时得知失锁"))
	l.Observe("forgot", quorum(servers))
	jump := failure(l, m, ann, bob, "clocks", lab.T("Three clocks jump", "三个时钟跳变"), lab.T("three clocks jump",
		"三个时钟跳变"),
		lab.T("The clocks of three servers are set forward, by more than the lease. To them the lock is over.",
			"三台服务器的时钟被拨快，超过了租约。在它们看来，锁已到期。"), true,
		func() {
			for _, s := range m[:quorum(servers)] {
				s.FastForward(time.Hour)
			}
		})
	row(lab.T("the clocks of three are set forward", "三台的时钟被拨快"), jump, lab.T("at once", "立即"),
		lab.T("learns of the loss at its next renewal, or by its release", "在下次续期或释放时得知失锁"))
	pausedVoter(l, m, ann, bob, term)
	row(lab.T("the holder is paused past its lease",
		"持有者被暂停，超过租约"), 0, lab.T("after the lease", "租约到期后"),
		lab.T("learns of the loss if it asks; it has no token for the resource to refuse",
			"询问时才得知失锁；没有令牌可供资源拒绝"))
	l.Table(table)
	return nil
}

// stopped has two servers stop while a lock is held, and then a third one.
func stopped(l *lab.Lab, m masters, holder, other *voter, term time.Duration,
	row func(what lab.Text, have int, another, told lab.Text)) {
	const name, leases = "order", 2
	t := l.Timeline(lab.T("Two stop, and then a third",
		"两台停止，然后是第三台"), lab.T("The holder continues with three servers of five, and "+
		"loses the lock with two. Nobody gets it until there are enough again.",
		"五台剩三台时持有者继续工作，只剩两台时失去锁。在足够多的服务器恢复之前，谁也得不到锁。"))
	first, second := t.Wrap(lab.T("lock", "锁"), holder.locks.Mutex(name)), other.locks.Mutex(name)
	has, two, three := make(chan struct{}), make(chan struct{}), make(chan struct{})
	refused, worked, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var at, told time.Time
	t.Go(lab.T("servers", "服务器"), func(ctx context.Context, me *lab.Lane) error {
		me.Set(lab.Running, lab.T("five run", "五台运行"))
		<-has
		l.Until(lab.T("the last of the servers has voted",
			"最后一台服务器已投票"), func() bool { return m.have(name) == len(m) })
		me.Work(term / 10)
		for _, s := range m[quorum(len(m)):] {
			s.Close()
		}
		me.Set(lab.Running, lab.T("three run", "三台运行"))
		me.Mark(lab.T("two stop", "两台停止"))
		close(two)
		<-worked
		l.Equal(quorum(len(m)), m[:quorum(len(m))].have(name), lab.T("a majority has the lock, renewed",
			"多数服务器拥有已续期的锁"))
		row(lab.T("two stop", "两台停止"), quorum(len(m)), lab.T("no", "否"), lab.T("continues", "继续"))
		m[0].Close()
		at = time.Now()
		row(lab.T("three stop",
			"三台停止"), m[1:quorum(len(m))].have(name), lab.T("no",
			"否"), lab.T("learns of the loss before its lease expires",
			"在租约到期之前得知失锁"))
		me.Set(lab.Running, lab.T("two run", "两台运行"))
		me.Mark(lab.T("a third stops", "第三台停止"))
		close(three)
		<-asked
		// They come back without data. That is safe now: all locks that they had have expired.
		masters{m[0], m[3], m[4]}.forget(l)
		me.Set(lab.Running, lab.T("five run", "五台运行"))
		me.Mark(lab.T("three are back", "三台恢复"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, first, func(held context.Context) error {
			close(has)
			<-two
			me.Work(term + term/2)
			<-refused
			l.Check(held.Err() == nil,
				lab.T("while a majority of servers runs, the holder works for longer than its lease",
					"多数服务器运行时，持有者可以工作得比租约更久"))
			close(worked)
			select {
			case <-held.Done():
				told = time.Now()
			case <-asked:
			}
			l.Check(held.Err() != nil, lab.T("when too few servers have run for longer than the lease, the "+
				"holder knows of the loss", "运行的服务器不足的时间超过租约时，持有者已得知失锁"))
			l.Is(locks.ErrLost, context.Cause(held), lab.T("without a majority the context of the work ends with "+
				"locks.ErrLost", "没有多数时，工作的 context 以 locks.ErrLost 结束"))
			l.Observe("cause", context.Cause(held).Error())
			me.Mark(lab.T("learns of the loss", "得知失锁"))
			return nil
		})
		l.Is(locks.ErrLost, err, lab.T("so does what Do returns", "Do 返回的也是它"))
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.T("other", "另一个"), func(ctx context.Context, me *lab.Lane) error {
		ask := func() error {
			ok, err := second.TryLockContext(ctx)
			l.Check(!ok, lab.T("no process gets the lock while it is held, or while too few servers run",
				"锁被持有或运行的服务器不足时，没有进程得到锁"))
			return err
		}
		<-two
		me.Set(lab.Waiting, lab.T("asks for lock in vain", "白白申请锁"))
		err := ask()
		for range 20 { // a busy machine may not get the answers of so many servers in time
			if err == nil {
				break
			}
			err = ask()
		}
		l.Check(err == nil, lab.T("with three servers the answer is that it is held",
			"有三台服务器时，答复是锁已被持有"))
		close(refused)
		<-three
		tries := 0
		for time.Since(at) < leases*term {
			err = ask()
			tries++
			me.Work(term / 20)
		}
		if err == nil {
			close(asked)
			return errors.New("with two servers there is an answer, and no error")
		}
		l.Observe("asked", tries)
		_, answer, _ := strings.Cut(err.Error(), "redislock: ")
		answer, _, _ = strings.Cut(answer, ":") // and then what each of the servers said
		l.Observe("answer", answer)
		close(asked)
		l.Until(lab.T("enough servers are back", "足够多的服务器已恢复"), func() bool {
			ok, err := second.TryLockContext(ctx)
			return ok && err == nil
		})
		got := time.Now()
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		me.Work(term / 10)
		l.Check(told.Before(got), lab.T("the holder learns of the loss before another process has the lock",
			"持有者在别的进程得到锁之前得知失锁"))
		l.Check(told.Sub(at) < term, lab.T("the holder learns of the loss before its lease expires",
			"持有者在租约到期之前得知失锁"))
		l.Observe("told", told.Sub(at))
		l.Observe("apart", got.Sub(told))
		err = second.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 20)
		return err
	})
	t.Wait()
	l.Observe("two", len(m)-quorum(len(m)))
}

// failure has something happen to servers while Ann has the lock, and Bob ask for it, who gets it
// or not. It returns how many servers still have Ann's.
func failure(l *lab.Lab, m masters, ann, bob *voter, name string, title, mark, desc lab.Text, gets bool,
	happen func()) (have int) {
	t := l.Timeline(title, desc)
	first, second := t.Wrap(lab.T("lock", "锁"), ann.locks.Mutex(name)), bob.locks.Mutex(name)
	var in inside
	happened, asked := make(chan struct{}), make(chan struct{})
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		if err := first.LockContext(ctx); err != nil {
			return err
		}
		in.enter()
		hold, err := ann.locks.Mutex(name).Hold(ctx)
		if err != nil {
			return errors.Join(err, first.UnlockContext(ctx))
		}
		l.Equal(uint64(0), hold.Token(), lab.T("a hold of Redlock has no token", "红锁的持有没有令牌"))
		l.Observe("token", hold.Token())
		l.Until(lab.T("the last of the servers has voted",
			"最后一台服务器已投票"), func() bool { return m.have(name) == len(m) })
		me.Work(5 * time.Millisecond)
		happen()
		me.Mark(mark)
		have = m.have(name)
		close(happened)
		<-asked
		l.Check(hold.Err() == nil, lab.T("the first holder has not heard of anything",
			"第一个持有者什么也没有得知"))
		in.leave()
		err = first.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works", "运行"))
		if gets {
			l.Is(locks.ErrLost, err, lab.T("the release tells a holder that has lost the majority",
				"失去多数的持有者在释放时得知"))
			err = nil
		}
		me.Work(3 * time.Millisecond)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-happened
		defer close(asked)
		me.Set(lab.Waiting, lab.T("asks for lock", "申请锁"))
		if !gets {
			for range 5 {
				me.Work(time.Millisecond)
				ok, err := second.TryLockContext(ctx)
				l.Check(!ok && err == nil, lab.T("the votes of a minority are of no use to another",
					"少数的票对他人没有用"))
			}
			me.Mark(lab.T("is refused", "被拒绝"))
			me.Set(lab.Running, lab.T("works", "运行"))
			me.Work(3 * time.Millisecond)
			return nil
		}
		// The client may first have to give up its earlier connections.
		l.Until(lab.T("a majority votes for Bob", "多数把票投给 Bob"), func() bool {
			ok, err := second.TryLockContext(ctx)
			return ok && err == nil
		})
		in.enter()
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		me.Work(5 * time.Millisecond)
		l.Equal(int64(2), in.most.Load(), lab.T("a majority that has forgotten the first holder lets a second one in",
			"遗忘了第一个持有者的多数会放进第二个"))
		l.Observe("most", in.most.Load())
		in.leave()
		err := second.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(3 * time.Millisecond)
		return err
	})
	t.Wait()
	if gets {
		l.Check(have < quorum(len(m)), lab.T("the first holder's majority is gone", "第一个持有者的多数没有了"))
	} else {
		l.Equal(int64(1), in.most.Load(), lab.T("there is one holder while the majority stands",
			"多数仍在时，只有一个持有者"))
		l.Check(have >= quorum(len(m)) && have < len(m), lab.T("a majority of servers still has the lock",
			"多数服务器仍拥有锁"))
	}
	l.Until(lab.T("no process has the lock", "没有进程持有锁"), func() bool { return m.have(name) == 0 })
	return have
}

// pausedVoter has Ann stop while she has the lock, until it was Bob's, and then write.
func pausedVoter(l *lab.Lab, m masters, ann, bob *voter, term time.Duration) {
	const name = "paused"
	t := l.Timeline(lab.T("A holder is paused",
		"持有者被暂停"), lab.T("Ann continues after her lease has expired and Bob has written. She "+
		"has no token to send along, and overwrites what he wrote.",
		"Ann 的租约到期、Bob 写入之后，Ann 继续运行。她没有可以随写入发送的令牌，覆盖了他写入的值。"))
	annLock, bobLock := ann.locks.Mutex(name, lease.WithFixedTTL(term)), bob.locks.Mutex(name)
	first, second := t.Wrap(lab.T("lock", "锁"), annLock), t.Wrap(lab.T("lock", "锁"), bobLock)
	var r resource
	has, done := make(chan struct{}), make(chan struct{})
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		if err := first.LockContext(ctx); err != nil {
			return err
		}
		hold, err := annLock.Hold(ctx)
		if err != nil {
			return errors.Join(err, first.UnlockContext(ctx))
		}
		close(has)
		me.Is(lab.Exclusive, lab.T("is paused", "被暂停"), func() { <-done })
		l.Until(lab.T("Bob's lock is off all servers, as Ann's is",
			"所有服务器上都没有 Ann 的锁，也没有 Bob 的锁"), func() bool { return m.have(name) == 0 })
		l.Check(r.write("Ann's", hold.Token()) == nil, lab.T("without tokens the resource accepts a stale write",
			"没有令牌，资源接受过时的写入"))
		me.Mark(lab.T("writes", "写入"))
		l.Is(locks.ErrLost, hold.Err(), lab.T("the hold would have said so, had it been asked",
			"如果询问过持有状态，它本会说明这一点"))
		l.Is(locks.ErrLost, first.UnlockContext(ctx), lab.T("its unlock says so, too",
			"它的解锁也说明了这一点"))
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-has
		defer close(done)
		return locks.Do(ctx, second, func(ctx context.Context) error {
			hold, err := bobLock.Hold(ctx)
			if err != nil {
				return err
			}
			me.Work(term / 10)
			err = r.write("Bob's", hold.Token())
			me.Mark(lab.T("writes", "写入"))
			me.Work(term / 10)
			return err
		})
	})
	t.Wait()
	l.Equal("Ann's", r.value, lab.T("what the stale holder wrote stays", "过时的持有者写入的值留了下来"))
	l.Observe("stale", r.value)
}
