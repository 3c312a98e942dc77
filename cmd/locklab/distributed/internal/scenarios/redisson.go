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
	Lesson: 60,
	Name:   "redisson",
	Topic:  lab.T("Waiting", "等待"),
	Title: lab.T("Redisson's locks, and what they keep on the server",
		"Redisson 的锁，以及它们在服务器上保存什么"),
	Question: lab.T(`How do processes in Go and in Java share a lock, even a fair one?`,
		"Go 进程和 Java 进程怎样共用一把锁，甚至是公平锁？"),
	Claim: lab.T(`Redisson's lock is a hash under the lock's name. Its one field names the client and the thread, its
value counts holds, and its time to live is the lease. Re-entry increments the count. The release of the
last hold deletes the hash, and publishes a message.

The fair lock keeps two more keys: a list of the waiters in order of arrival, and a sorted set with the
time at which each of them counts as dead. Only the head of the list may acquire the lock, and only the
head is notified. A dead waiter leaves the queue at its time.`,
		`Redisson 的锁是以锁名为键的哈希。它唯一的字段标明客户端和线程，值是持有次数，存活时间就是租约。
重入时次数加一；最后一次释放时删除哈希，并发布一条消息。

公平锁还有两个键：一个列表，按到达顺序保存等待者；一个有序集合，保存每个等待者被视为死亡的时间。
只有列表的第一个可以获取锁，也只通知第一个。死去的等待者到时就离开队列。`),
	Look: lab.T(`Several processes come one after another, and wait in the fair lock's queue. They get the lock in the
order of their arrival. The table has the keys on the server while all of them wait.`,
		`几个进程先后到来，在公平锁的队列中等待，按到达的顺序得到锁。表格是它们都在等待时服务器上的键。`),
	Found: lab.T(`The order of arrival was {{.came}}, and the order of admission {{.got}}. While they waited, the
list had {{n .listed}} entries. The holder, which held the lock {{times .holds}}, had a count of {{.count}} on
the server: re-entry is counted in the process, and costs no command.`,
		`到达的顺序是：{{.came}}；放行的顺序是：{{.got}}。等待期间，列表有 {{n .listed}} 项。持有者持有了
锁 {{times .holds}}，而服务器上的次数是 {{.count}}：重入在进程内计数，不需要命令。`),
	Take: lab.T(`Use the fair lock if a long wait is worse than slower hand-offs: every hand-off goes to a process that
has to be notified first. The formats are Redisson's own, so a system can move from Java to Go process
by process.`, `如果等得久比移交慢更糟，就用公平锁：它每次都移交给一个要先收到通知的进程。格式与 Redisson
完全相同，所以系统可以逐个进程地从 Java 迁移到 Go。`),
	Java: lab.Same(`RLock lock = redisson.getFairLock("queue");
lock.lock();`),
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

	table := lab.Table{Title: lab.T("On the server, while all wait",
		"全部等待时，服务器上的内容"), Head: []lab.Text{lab.T("key",
		"键"), lab.T("type",
		"类型"), lab.T("content",
		"内容")}}
	t := l.Timeline(lab.T("A fair lock",
		"公平锁"), lab.T("The waiters come one after another, and get the lock in that order.",
		"等待者先后到来，按同样的顺序得到锁。"))
	const holds = 2
	came, got := []lab.Text{}, []lab.Text{}
	reentered := make(chan struct{})
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		lock := fairly(all[0].locks, name)
		return nested(ctx, t.Wrap(lab.Same(name), lock), holds, func() error {
			// With its first hold the client subscribes and describes itself, in the background.
			l.Until(lab.T("the holder hears of forced unlocks, and can be found",
				"持有者能收到强制解锁的消息，并且可以找到"), func() bool {
				described := func(key string) bool { return strings.HasPrefix(key, "locks_client:") }
				return len(s.PubSubChannels("locks_client:*")) > 0 && slices.ContainsFunc(s.Keys(), described)
			})
			before := s.commands.Load()
			l.Must(nested(ctx, lock, 1, func() error { return nil }))
			l.Equal(before, s.commands.Load(), lab.T("re-entry costs no command", "重入不需要命令"))
			close(reentered) // The others come now.
			l.Until(lab.T("all wait", "全部在等待"), func() bool { return queued() == waiters })
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
		who := lab.T("waiter %d", "等待者 %d").With(i + 1)
		came = append(came, who)
		t.Go(who, func(ctx context.Context, me *lab.Lane) error {
			lock := t.Wrap(lab.Same(name), fairly(all[i+1].locks, name))
			return locks.Do(ctx, lock, func(context.Context) error {
				got = append(got, who) // guarded by the lock
				me.Work(4 * time.Millisecond)
				return nil
			})
		})
		l.Until(lab.T("it queues", "它已排队"), func() bool { return queued() == i+1 })
	}
	t.Wait()
	l.Equal(came, got, lab.T("the fair lock admits in the order of arrival, from process to process",
		"公平锁在进程之间按到达顺序放行"))
	l.Check(!s.Exists(name) && !s.Exists(queue) && !s.Exists(times), lab.T("nothing is left on the server in the end",
		"最后服务器上什么也没有留下"))
	l.Table(table)
	l.Observe("came", lab.Join(came, lab.T(", ", "、")))
	l.Observe("got", lab.Join(got, lab.T(", ", "、")))
	l.Observe("holds", holds)

	// The table shows Redisson's count of the plain lock.
	plain := all[0].locks.Mutex("plain")
	l.Must(plain.LockContext(ctx))
	l.Equal("hash", s.Type("plain"), lab.T("the plain lock is a hash", "普通锁是一个哈希"))
	l.Must(plain.UnlockContext(ctx))
	l.Check(!s.Exists("plain"), lab.T("and its release deletes it", "释放时删除它"))
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
	l.Equal(1, len(fields), lab.T("the lock has one holder", "锁有一个持有者"))
	count := s.HGet(lock, fields[0])
	row := func(key string, kind lab.Text, content string) {
		table.Rows = append(table.Rows, []lab.Text{lab.Same(key), kind, lab.Same(content)})
	}
	row(lock, lab.T("hash", "哈希"), brief(fields[0])+" = "+count)
	list, err := s.List(queue)
	l.Must(err)
	set, err := s.SortedSet(times)
	l.Must(err)
	l.Equal(len(list), len(set), lab.T("every waiter in the list is in the sorted set",
		"列表中的每个等待者都在有序集合中"))
	var waiting, dying []string
	for _, owner := range list {
		waiting = append(waiting, brief(owner))
		at := time.UnixMilli(int64(set[owner]))
		dying = append(dying, brief(owner)+" = "+at.UTC().Format("15:04:05"))
		l.Check(at.After(time.Now()), lab.T("no waiter counts as dead yet", "还没有等待者被视为死亡"))
	}
	row(queue, lab.T("list", "列表"), strings.Join(waiting, ", "))
	row(times, lab.T("sorted set", "有序集合"), strings.Join(dying, ", "))
	l.Observe("listed", len(list))
	l.Observe("count", count)
}
