package scenarios

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/redislock"
)

var _ = register(lab.Scenario{
	Lesson:   60,
	Name:     "redisson",
	Topic:    lab.T("Waiting"),
	Title:    lab.T("Redisson's locks, and what they keep on the server"),
	Question: lab.T(`How do processes in Go and in Java share a lock, even a fair one?`),
	Claim: lab.T(`Redisson's lock is a hash under the lock's name. Its one field names the client and the thread, its
value counts holds, and its time to live is the lease. Re-entry increments the count. The release of the
last hold deletes the hash, and publishes a message.

The fair lock keeps two more keys: a list of the waiters in order of arrival, and a sorted set with the
time at which each of them counts as dead. Only the head of the list may acquire the lock, and only the
head is notified. A dead waiter leaves the queue at its time.`),
	Look: lab.T(`Several processes come one after another, and wait in the fair lock's queue. They get the lock in the
order of their arrival. The table has the keys on the server while all of them wait.`),
	Found: lab.T(`The order of arrival was {{.came}}, and the order of admission {{.got}}. While they waited, the
list had {{n .listed}} entries. The holder, which held the lock {{times .holds}}, had a count of {{.count}} on
the server: re-entry is counted in the process, and costs no command.`),
	Take: lab.T(`Use the fair lock if a long wait is worse than slower hand-offs: every hand-off goes to a process that
has to be notified first. The formats are Redisson's own, so a system can move from Java to Go process
by process.`),
	Java: `RLock lock = redisson.getFairLock("queue");
lock.lock();`,
	Run: redisson,
})

//lab:show

// fairly returns a lock that goes to the process that has waited longest, in Go or in Java.
func fairly(client *redislock.Client, name string) locks.TryLocker { return client.FairMutex(name) }

// nested has several holds of a lock while it calls f. Only the first hold concerns the server.
func nested(ctx context.Context, l locks.Locker, holds int, f func() error) error {
	if holds == 0 {
		return f()
	}
	return locks.Do(ctx, l, func(ctx context.Context) error { return nested(ctx, l, holds-1, f) })
}

//lab:end

func redisson(ctx context.Context, l *lab.Lab) error {
	s := newServer(l)
	const name, waiters = "ticket", 3
	var all []*process
	for range waiters + 1 {
		all = append(all, s.process(l, time.Minute))
	}
	defer s.end(all...)
	queue, times := "redisson_lock_queue:{"+name+"}", "redisson_lock_timeout:{"+name+"}"
	queued := func() int {
		list, err := s.List(queue)
		if err != nil { // no such key
			return 0
		}
		return len(list)
	}

	table := lab.Table{Title: lab.T("On the server, while all wait"), Head: []lab.Text{lab.T("key"), lab.T("type"), lab.T("content")}}
	t := l.Timeline(lab.T("A fair lock"), lab.T("The waiters come one after another, and get the lock in that order."))
	const holds = 2
	came, got := []lab.Text{}, []lab.Text{}
	reentered := make(chan struct{})
	t.Go(lab.T("holder"), func(ctx context.Context, me *lab.Lane) error {
		lock := fairly(all[0].locks, name)
		return nested(ctx, t.Wrap(lab.Same(name), lock), holds, func() error {
			// With its first hold the client subscribes and describes itself, in the background.
			l.Until(lab.T("the holder hears of forced unlocks, and can be found"), func() bool {
				described := func(key string) bool { return strings.HasPrefix(key, "locks_client:") }
				return len(s.PubSubChannels("locks_client:*")) > 0 && slices.ContainsFunc(s.Keys(), described)
			})
			before := s.commands.Load()
			l.Must(nested(ctx, lock, 1, func() error { return nil }))
			l.Equal(before, s.commands.Load(), lab.T("re-entry costs no command"))
			close(reentered) // The others come now.
			l.Until(lab.T("all wait"), func() bool { return queued() == waiters })
			me.Work(3 * time.Millisecond)
			dump(l, s, &table, name, queue, times)
			return nil
		})
	})
	select {
	case <-reentered:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i := range waiters {
		who := lab.T("waiter %d").With(i + 1)
		came = append(came, who)
		t.Go(who, func(ctx context.Context, me *lab.Lane) error {
			lock := t.Wrap(lab.Same(name), fairly(all[i+1].locks, name))
			return locks.Do(ctx, lock, func(context.Context) error {
				got = append(got, who) // guarded by the lock
				me.Work(4 * time.Millisecond)
				return nil
			})
		})
		l.Until(lab.T("it queues"), func() bool { return queued() == i+1 })
	}
	t.Wait()
	l.Equal(came, got, lab.T("the fair lock admits in the order of arrival, from process to process"))
	l.Check(!s.Exists(name) && !s.Exists(queue) && !s.Exists(times), lab.T("nothing is left on the server in the end"))
	l.Table(table)
	l.Observe("came", lab.Join(came, lab.T(", ")))
	l.Observe("got", lab.Join(got, lab.T(", ")))
	l.Observe("holds", holds)

	// The table shows Redisson's count of the plain lock.
	plain := all[0].locks.Mutex("plain")
	l.Must(plain.LockContext(ctx))
	l.Equal("hash", s.Type("plain"), lab.T("the plain lock is a hash"))
	l.Must(plain.UnlockContext(ctx))
	l.Check(!s.Exists("plain"), lab.T("and its release deletes it"))
	return nil
}

// dump writes down what is on the server. Times to die are in UTC.
func dump(l *lab.Lab, s *server, table *lab.Table, lock, queue, times string) {
	// The first part of an owner is the client, a random number: its beginning is enough. The
	// second part is the time of the acquisition: its end is enough.
	brief := func(owner string) string {
		client, acquisition, _ := strings.Cut(owner, ":")
		return client[:min(len(client), 8)] + "...:..." + acquisition[max(len(acquisition)-4, 0):]
	}
	fields, err := s.HKeys(lock)
	l.Must(err)
	l.Equal(1, len(fields), lab.T("the lock has one holder"))
	count := s.HGet(lock, fields[0])
	row := func(key, kind, content string) {
		table.Rows = append(table.Rows, []lab.Text{lab.Same(key), lab.Same(kind), lab.Same(content)})
	}
	row(lock, "hash", brief(fields[0])+" = "+count)
	list, err := s.List(queue)
	l.Must(err)
	set, err := s.SortedSet(times)
	l.Must(err)
	l.Equal(len(list), len(set), lab.T("every waiter in the list is in the sorted set"))
	var waiting, dying []string
	for _, owner := range list {
		waiting = append(waiting, brief(owner))
		at := time.UnixMilli(int64(set[owner]))
		dying = append(dying, brief(owner)+" = "+at.UTC().Format("15:04:05"))
		l.Check(at.After(time.Now()), lab.T("no waiter counts as dead yet"))
	}
	row(queue, "list", strings.Join(waiting, ", "))
	row(times, "sorted set", strings.Join(dying, ", "))
	l.Observe("listed", len(list))
	l.Observe("count", count)
}
