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
	Lesson:   80,
	Name:     "redlock",
	Topic:    lab.T("Several servers"),
	Title:    lab.T("Redlock: a majority of servers, and what it rests on"),
	Question: lab.T("Can a lock outlive the server that it is on?"),
	Claim: lab.T(`One server is one point of failure. A replica does not help: it learns of a lock later than the holder,
and may be promoted in between. Redlock takes several independent masters. A process that sets the same
key on more than half of them, well within the lease, has the lock. Any two majorities have a server in
common, and that server gives the key to one process.

A minority may fail. A server may even come back without its data, as long as the holder has a majority
without that server. Redlock rests on three conditions: a server that lost its locks stays away until
all of them have expired; no clock jumps; no process is paused past its lease. The third condition is
the weak point of every lease, but other locks have a fencing token against it. Redlock has none:
counters on independent servers have no common order.`),
	Look: lab.T(`The lane of the servers shows how many of them run. The holder continues while a majority runs, and gets
a report of its loss when it does not. The other process asks too, and gets the lock after the lease,
when enough servers are back. In the later pictures all servers run. All five have voted for Ann, so one
server that loses its data makes no difference. If three lose their data at once, or their clocks jump,
Bob gets the lock while Ann has it. In the last picture Ann is paused, and there is no token by which the
resource could refuse her write.`),
	Found: lab.T(`With {{.two}} of {{.servers}} servers the holder could not renew. It learned of the loss {{n .told}} after
the third had stopped, with the cause "{{.cause}}". The other asked {{times .asked}} in vain, the last time
with the answer "{{.answer}}", and had the lock {{n .apart}} after that. When {{.forgot}}
servers lost their locks at once, there were {{.most}} holders, and the first one's hold reported it only when
it was released. The token of a hold was {{.token}}, and the stale write of a holder that had been paused
stayed: {{.stale}} value.`),
	Take: lab.T(`Redlock makes a lock more available, not more certain. Let servers write each change to disk before they
answer, or stay away for the longest lease after a restart. Let clocks be slewed, never set. If two
holders at a time do harm, use a lock with a token and a resource that checks it, or a store that agrees
before it answers: etcd, ZooKeeper, a database.`),
	Java: `RLock lock = new RedissonRedLock(
    a.getLock("order"), b.getLock("order"), c.getLock("order"));
lock.lock();`,
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

// forget has them come back at once from a crash, without what they knew.
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
	table := lab.Table{Title: lab.T("What the lock stands, and what it does not"),
		Head: []lab.Text{lab.T("what happens"), lab.T("servers that have the lock"), lab.T("another gets it"), lab.T("the holder")}}
	row := func(what lab.Text, have int, another, told lab.Text) {
		table.Rows = append(table.Rows, []lab.Text{what, lab.T("%d of %d").With(have, servers), another, told})
	}

	stopped(l, m, holder, other, term, row)
	one := failure(l, m, ann, bob, "one", lab.T("One forgets"), lab.T("one forgets"),
		lab.T("One server comes back empty. Bob gets its vote, and no more: he is refused."), false,
		func() { m[:1].forget(l) })
	row(lab.T("one comes back empty"), one, lab.T("no"), lab.T("continues"))
	three := failure(l, m, ann, bob, "three", lab.T("Three forget at once"), lab.T("three forget at once"),
		lab.T("Three servers come back empty while the lock is held. They make a majority for Bob."), true,
		func() { m[:quorum(servers)].forget(l) })
	row(lab.T("three come back empty at once"), three, lab.T("at once"), lab.T("learns of the loss at its next renewal, or by its release"))
	l.Observe("forgot", quorum(servers))
	jump := failure(l, m, ann, bob, "clocks", lab.T("Three clocks jump"), lab.T("three clocks jump"),
		lab.T("The clocks of three servers are set forward, by more than the lease. To them the lock is over."), true,
		func() {
			for _, s := range m[:quorum(servers)] {
				s.FastForward(time.Hour)
			}
		})
	row(lab.T("the clocks of three are set forward"), jump, lab.T("at once"),
		lab.T("learns of the loss at its next renewal, or by its release"))
	pausedVoter(l, m, ann, bob, term)
	row(lab.T("the holder is paused past its lease"), 0, lab.T("after the lease"),
		lab.T("learns of the loss if it asks; it has no token for the resource to refuse"))
	l.Table(table)
	return nil
}

// stopped has two servers stop while a lock is held, and then a third one.
func stopped(l *lab.Lab, m masters, holder, other *voter, term time.Duration, row func(lab.Text, int, lab.Text, lab.Text)) {
	const name, leases = "order", 2
	t := l.Timeline(lab.T("Two stop, and then a third"), lab.T("The holder continues with three servers of five, and "+
		"loses the lock with two. Nobody gets it until there are enough again."))
	first, second := t.Wrap(lab.T("lock"), holder.locks.Mutex(name)), other.locks.Mutex(name)
	has, two, three := make(chan struct{}), make(chan struct{}), make(chan struct{})
	refused, worked, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var at, told time.Time
	t.Go(lab.T("servers"), func(ctx context.Context, me *lab.Lane) error {
		me.Set(lab.Running, lab.T("five run"))
		<-has
		l.Until(lab.T("the last of the servers has voted"), func() bool { return m.have(name) == len(m) })
		me.Work(term / 10)
		for _, s := range m[quorum(len(m)):] {
			s.Close()
		}
		me.Set(lab.Running, lab.T("three run"))
		me.Mark(lab.T("two stop"))
		close(two)
		<-worked
		l.Equal(quorum(len(m)), m[:quorum(len(m))].have(name), lab.T("a majority has the lock, renewed"))
		row(lab.T("two stop"), quorum(len(m)), lab.T("no"), lab.T("continues"))
		m[0].Close()
		at = time.Now()
		row(lab.T("three stop"), m[1:quorum(len(m))].have(name), lab.T("no"), lab.T("learns of the loss before its lease expires"))
		me.Set(lab.Running, lab.T("two run"))
		me.Mark(lab.T("a third stops"))
		close(three)
		<-asked
		// They come back without data. That is safe now: all locks that they had have expired.
		masters{m[0], m[3], m[4]}.forget(l)
		me.Set(lab.Running, lab.T("five run"))
		me.Mark(lab.T("three are back"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.T("holder"), func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, first, func(held context.Context) error {
			close(has)
			<-two
			me.Work(term + term/2)
			<-refused
			l.Check(held.Err() == nil, lab.T("while a majority of servers runs, the holder works for longer than its lease"))
			close(worked)
			select {
			case <-held.Done():
				told = time.Now()
			case <-asked:
			}
			l.Check(held.Err() != nil, lab.T("when too few servers have run for longer than the lease, the "+
				"holder knows of the loss"))
			l.Is(locks.ErrLost, context.Cause(held), lab.T("without a majority the context of the work ends with "+
				"locks.ErrLost"))
			l.Observe("cause", context.Cause(held).Error())
			me.Mark(lab.T("learns of the loss"))
			return nil
		})
		l.Is(locks.ErrLost, err, lab.T("so does what Do returns"))
		me.Set(lab.Running, lab.T("works"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.T("other"), func(ctx context.Context, me *lab.Lane) error {
		ask := func() error {
			ok, err := second.TryLockContext(ctx)
			l.Check(!ok, lab.T("no process gets the lock while it is held, or while too few servers run"))
			return err
		}
		<-two
		me.Set(lab.Waiting, lab.T("asks for lock in vain"))
		err := ask()
		for range 20 { // a busy machine may not get the answers of so many servers in time
			if err == nil {
				break
			}
			err = ask()
		}
		l.Check(err == nil, lab.T("with three servers the answer is that it is held"))
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
		l.Until(lab.T("enough servers are back"), func() bool {
			ok, err := second.TryLockContext(ctx)
			return ok && err == nil
		})
		got := time.Now()
		me.Set(lab.Exclusive, lab.T("has lock"))
		me.Work(term / 10)
		l.Check(told.Before(got), lab.T("the holder learns of the loss before another process has the lock"))
		l.Check(told.Sub(at) < term, lab.T("the holder learns of the loss before its lease expires"))
		l.Observe("told", told.Sub(at))
		l.Observe("apart", got.Sub(told))
		err = second.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works"))
		me.Work(term / 20)
		return err
	})
	t.Wait()
	l.Observe("two", len(m)-quorum(len(m)))
}

// failure has something happen to servers while Ann has the lock, and Bob ask for it, who gets it
// or not. It returns how many servers still have Ann's.
func failure(l *lab.Lab, m masters, ann, bob *voter, name string, title, mark, desc lab.Text, gets bool, happen func()) (have int) {
	t := l.Timeline(title, desc)
	first, second := t.Wrap(lab.T("lock"), ann.locks.Mutex(name)), bob.locks.Mutex(name)
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
		l.Equal(uint64(0), hold.Token(), lab.T("a hold of Redlock has no number"))
		l.Observe("token", hold.Token())
		l.Until(lab.T("the last of the servers has voted"), func() bool { return m.have(name) == len(m) })
		me.Work(5 * time.Millisecond)
		happen()
		me.Mark(mark)
		have = m.have(name)
		close(happened)
		<-asked
		l.Check(hold.Err() == nil, lab.T("the first holder has not heard of anything"))
		in.leave()
		err = first.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works"))
		if gets {
			l.Is(locks.ErrLost, err, lab.T("the release tells a holder that has lost the majority"))
			err = nil
		}
		me.Work(3 * time.Millisecond)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-happened
		defer close(asked)
		me.Set(lab.Waiting, lab.T("asks for lock"))
		if !gets {
			for range 5 {
				me.Work(time.Millisecond)
				ok, err := second.TryLockContext(ctx)
				l.Check(!ok && err == nil, lab.T("the votes of a minority are of no use to another"))
			}
			me.Mark(lab.T("is refused"))
			me.Set(lab.Running, lab.T("works"))
			me.Work(3 * time.Millisecond)
			return nil
		}
		// The connections of before may have to be given up first.
		l.Until(lab.T("a majority votes for Bob"), func() bool {
			ok, err := second.TryLockContext(ctx)
			return ok && err == nil
		})
		in.enter()
		me.Set(lab.Exclusive, lab.T("has lock"))
		me.Work(5 * time.Millisecond)
		l.Equal(int64(2), in.most.Load(), lab.T("a majority that has forgotten the first holder lets a second one in"))
		l.Observe("most", in.most.Load())
		in.leave()
		err := second.UnlockContext(ctx)
		me.Set(lab.Running, lab.T("works"))
		me.Work(3 * time.Millisecond)
		return err
	})
	t.Wait()
	if gets {
		l.Check(have < quorum(len(m)), lab.T("the first holder's majority is gone"))
	} else {
		l.Equal(int64(1), in.most.Load(), lab.T("there is one holder while the majority stands"))
		l.Check(have >= quorum(len(m)) && have < len(m), lab.T("a majority of servers still has the lock"))
	}
	l.Until(lab.T("no process has the lock"), func() bool { return m.have(name) == 0 })
	return have
}

// pausedVoter has Ann stop while she has the lock, until it was Bob's, and then write.
func pausedVoter(l *lab.Lab, m masters, ann, bob *voter, term time.Duration) {
	const name = "paused"
	t := l.Timeline(lab.T("A holder is paused"), lab.T("Ann continues after her lease has expired and Bob has written. She "+
		"has no number to send along, and overwrites what he wrote."))
	annLock, bobLock := ann.locks.Mutex(name, redislock.WithFixedTTL(term)), bob.locks.Mutex(name)
	first, second := t.Wrap(lab.T("lock"), annLock), t.Wrap(lab.T("lock"), bobLock)
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
		me.Is(lab.Exclusive, lab.T("is paused"), func() { <-done })
		l.Until(lab.T("Bob's lock is off all servers, as Ann's is"), func() bool { return m.have(name) == 0 })
		l.Check(r.write("Ann's", hold.Token()) == nil, lab.T("without tokens the resource accepts a stale write"))
		me.Mark(lab.T("writes"))
		l.Is(locks.ErrLost, hold.Err(), lab.T("the hold would have said so, had it been asked"))
		l.Is(locks.ErrLost, first.UnlockContext(ctx), lab.T("its unlock says so, too"))
		me.Set(lab.Running, lab.T("works"))
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
			me.Mark(lab.T("writes"))
			me.Work(term / 10)
			return err
		})
	})
	t.Wait()
	l.Equal("Ann's", r.value, lab.T("what the stale holder wrote stays"))
	l.Observe("stale", r.value)
}
