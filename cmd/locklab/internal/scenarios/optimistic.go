package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

var _ = register(lab.Scenario{
	Lesson: 110,
	Name:   "optimistic",
	Topic:  lab.T("Without a lock", "不加锁"),
	Title: lab.T("Pessimistic and optimistic, as writes become more frequent",
		"悲观与乐观：当写操作越来越频繁"),
	Question: lab.T(`Should a program lock first, or check at the end whether there was a writer?`,
		"程序应该先加锁，还是在最后检查有没有别人写过？"),
	Claim: lab.T(`A pessimistic lock comes first, and the reads and writes after it. An optimistic program reads a value
and its version, computes, and commits only if the version is still the same. If not, it discards the
work and starts again. Databases do it with a version column, processors with compare-and-swap.

Optimism pays off if conflicts are rare. It changes one variable only: data that belongs together has to
be one value. Readers can be optimistic while writers lock. A reader of a stamped lock acquires nothing,
and checks at its end whether a writer came in between. Or versions never change, and a reader keeps the
version that it has.`,
		`悲观锁先加锁，再读写。乐观的程序先读出值和版本，进行计算，只有版本没变才提交；否则丢弃结果，重新
开始。数据库用版本列实现，处理器用比较并交换实现。

冲突少时，乐观的做法划算。它只能改变一个变量，所以必须保持一致的数据要合成一个值。写者加锁时，读
者也可以是乐观的：带版本戳的锁，其读者什么也不获取，只在最后检查其间有没有写者。或者让每个版本永
不改变，读者保留自己读到的版本。`),
	Look: lab.T("In the picture both goroutines compute at the same time, one commits, and the other has to "+
		"compute again. In the charts the lines lead from reads only, on the left, to writes only, on the "+
		"right. They show throughput, and how many computations each result takes. Every computation "+
		"yields half way through, so that goroutines meet on any number of processors.\n\n"+
		"With `cas.Versioned` readers and writers are optimistic. With `rwlock.StampedLock` and "+
		"`rwlock.Snapshot` only the readers are, and the writers take turns.",
		"图中两个 goroutine 同时计算，一个提交，另一个必须重新计算。图表中的曲线从左边的只读到右边的"+
			"只写，给出吞吐量，以及每个结果需要的计算次数。每次计算到一半都会让出处理器，所以无论有多少处"+
			"理器，各个 goroutine 的计算都会重叠。\n\n"+
			"使用 `cas.Versioned` 时，读者和写者都是乐观的。使用 `rwlock.StampedLock` 和 `rwlock.Snapshot` "+
			"时，只有读者是乐观的，写者依次进行。"),
	Found: lab.T(`Best with reads only: {{.bestRead}}. Best with one write in ten: {{.bestTenth}}. Best with writes
only: {{.bestWrite}}. Which one was ahead as writes became more frequent? Of cas.Versioned and reentrant.Mutex:
{{.crossing}}. Of rwlock.StampedLock and rwlock.RWMutex: {{.crossingStamped}}. With writes only,
cas.Versioned computed {{index .attempts}} times for each commit; with one write in ten, a reader of
rwlock.StampedLock computed {{index .reads}} times for each result. Each ended with as many changes as were made.`,
		`只读时最快：{{.bestRead}}。写占十分之一时最快：{{.bestTenth}}。只写时最快：{{.bestWrite}}。写操
作越来越频繁时，谁领先？cas.Versioned 与 reentrant.Mutex 相比：{{.crossing}}。rwlock.StampedLock
与 rwlock.RWMutex 相比：{{.crossingStamped}}。只写时，cas.Versioned 每次提交平均计算 {{index .attempts}}
次；写占十分之一时，rwlock.StampedLock 的读者每个结果平均计算 {{index .reads}} 次。每一种最后的
改动次数都与实际进行的一样多。`),
	Take: lab.T("For frequent reads use `rwlock.Snapshot` or `cas.Versioned` for one value, and "+
		"`rwlock.StampedLock` for a few atomic fields. For writes that are short computations use "+
		"`cas.Versioned`. For long computations that often collide use a lock, so that the work is done "+
		"once. For effects outside the value, such as a sent message, always use a lock, because a retry "+
		"would repeat them.",
		"读多时，单个值用 `rwlock.Snapshot` 或 `cas.Versioned`，少数几个原子字段用 `rwlock.StampedLock`。"+
			"写操作是短计算时，用 `cas.Versioned`。计算长而且经常冲突时，用锁，这样工作只做一次。如果有值"+
			"以外的副作用（例如发出消息），一律用锁，因为重试会重复这些副作用。"),
	Java: lab.Same(`AtomicReference<Account> account = ...;
account.updateAndGet(a -> a.withdraw(amount));    // %s

UPDATE account SET ..., version = version + 1
WHERE id = ? AND version = ?                      -- %s

long stamp = lock.tryOptimisticRead();            // StampedLock
Account a = read();
if (!lock.validate(stamp)) { ... readLock() ... }`).With(lab.T("may run several times",
		"可能运行多次"), lab.T("0 rows: start over", "0 行：重新开始")),
	Run: optimistic,
})

//lab:show

type account struct{ balance, changes int64 }

// pessimistic computes with the lock held.
func pessimistic(mu sync.Locker, a *account, compute func(account) account) {
	mu.Lock()
	defer mu.Unlock()
	*a = compute(*a)
}

// withVersion computes without a lock, and again if another goroutine committed meanwhile.
func withVersion(ctx context.Context, a *cas.Versioned[account], compute func(account) account) error {
	_, err := a.Update(ctx, func(old account) (account, error) { return compute(old), nil })
	return err
}

// stampedAccount has atomic fields, because optimistic readers read them while a writer may
// change them.
type stampedAccount struct {
	lock             rwlock.StampedLock
	balance, changes atomic.Int64
}

func (s *stampedAccount) load() account { return account{s.balance.Load(), s.changes.Load()} }

// read computes without a lock, and again with one if a writer came in between.
func (s *stampedAccount) read(compute func(account) account) account {
	if stamp := s.lock.TryOptimisticRead(); stamp != 0 {
		result := compute(s.load()) // may have seen half of a change; do not use it before Validate
		if s.lock.Validate(stamp) {
			return result
		}
	}
	stamp := s.lock.ReadLock()
	defer s.lock.UnlockRead(stamp)
	return compute(s.load())
}

func (s *stampedAccount) write(compute func(account) account) {
	stamp := s.lock.WriteLock()
	defer s.lock.UnlockWrite(stamp)
	a := compute(s.load())
	s.balance.Store(a.balance)
	s.changes.Store(a.changes)
}

//lab:end

func optimistic(ctx context.Context, l *lab.Lab) error {
	conflict(ctx, l)
	shares := lab.Pick(l, []float64{0, tenth, 0.5, 1}, []float64{0, 0.02, 0.05, tenth, 0.25, 0.5, 0.75, 1})
	slot := lab.Pick(l, 15*time.Millisecond, 40*time.Millisecond)
	rounds := lab.Pick(l, 2, 4)
	throughput := make([]lab.Series, len(contestedAccounts))
	writers, readers := lab.Series{Name: lab.T("cas.Versioned, for each "+
		"commit",
		"cas.Versioned，每次提交")}, lab.Series{Name: lab.T("rwlock.StampedLock, for each read",
		"rwlock.StampedLock，每次读")}
	best := map[float64]lab.Text{}
	for _, share := range shares {
		// Of several rounds the best counts: whatever disturbs makes it slower.
		rates := make([]float64, len(contestedAccounts))
		commits, reads := 0.0, 0.0
		for range rounds {
			for i, c := range contestedAccounts {
				m, err := mix(ctx, l, c.new(), share, slot)
				if err != nil {
					return fmt.Errorf("%s with %v writes: %w", c.name, share, err)
				}
				rates[i] = max(rates[i], m.rate)
				switch c.name {
				case "cas.Versioned":
					commits += m.commits / float64(rounds)
				case "rwlock.StampedLock":
					reads += m.reads / float64(rounds)
				}
			}
		}
		var ahead []lab.Text
		for i, c := range contestedAccounts {
			throughput[i].Name = lab.Same(c.name)
			throughput[i].Points = append(throughput[i].Points, lab.Point{X: share, Y: rates[i]})
			if rates[i]*level >= slices.Max(rates) {
				ahead = append(ahead, lab.Same(c.name))
			}
		}
		best[share] = lab.Join(ahead, lab.T(", ", "、"))
		if share > 0 {
			writers.Points = append(writers.Points, lab.Point{X: share, Y: commits})
			l.Observe("attempts", commits)
		}
		if share < 1 {
			readers.Points = append(readers.Points, lab.Point{X: share, Y: reads})
		}
		if share == tenth {
			l.Observe("reads", reads)
		}
	}
	l.Observe("bestRead", l.Verdict(best[0]))
	l.Observe("bestTenth", l.Verdict(best[tenth]))
	l.Observe("bestWrite", l.Verdict(best[1]))
	const mutex, rw, stamped, versioned = 0, 1, 2, 4
	l.Observe("crossing",
		l.Verdict(crossing(inverse(throughput[versioned]), inverse(throughput[mutex]), lab.Percent)))
	l.Observe("crossingStamped",
		l.Verdict(crossing(inverse(throughput[stamped]), inverse(throughput[rw]), lab.Percent)))
	writes := lab.Axis{Label: lab.T("share of writes", "写操作的比例"), Unit: lab.Percent}
	l.Chart(lab.Chart{Title: lab.T("Throughput over the share of writes", "吞吐量随写操作比例的变化"), X: writes,
		Y: lab.Axis{Label: lab.T("operations", "操作数"), Unit: lab.Rate}, Series: throughput,
		Desc: lab.T("Operations a second, all goroutines together, over the share of operations that write. "+
			"Higher is better.", "所有 goroutine 合计的每秒操作数，随写操作的比例变化。越高越好。")})
	l.Chart(lab.Chart{Title: lab.T("Computations for each result",
		"每个结果需要的计算次数"), X: writes, Y: lab.Axis{Label: lab.T("computations",
		"计算次数")},
		Series: []lab.Series{writers, readers},
		Desc: lab.T("How often the optimistic writer computes until it can commit, and the optimistic reader "+
			"until its result counts, over the share of writes. More than one is work in vain.",
			"乐观的写者要计算多少次才能提交，乐观的读者要计算多少次结果才有效，随写操作的比例变化。超"+
				"过一次的都是白费的工作。")})
	return nil
}

const tenth = 0.1

// inverse turns a line upside down, so that lower is better.
func inverse(s lab.Series) lab.Series {
	points := make([]lab.Point, len(s.Points))
	for i, p := range s.Points {
		points[i] = lab.Point{X: p.X, Y: 1 / max(p.Y, 1)}
	}
	return lab.Series{Name: s.Name, Points: points}
}

// contestedAccount is an account that many compute with. The value that end returns is for when
// nobody does any more.
type contestedAccount struct {
	read  func(compute func(account) account) account
	write func(ctx context.Context, compute func(account) account) error
	end   func() account
}

// contestedAccounts are the ways compared, in the colours of the chart.
var contestedAccounts = []struct {
	name string
	new  func() contestedAccount
}{
	{"reentrant.Mutex", func() contestedAccount {
		var mu reentrant.Mutex
		return locked(&mu, &mu)
	}},
	{"rwlock.RWMutex", func() contestedAccount {
		var rw rwlock.RWMutex
		return locked(rw.RLocker(), &rw)
	}},
	{"rwlock.StampedLock", func() contestedAccount {
		var s stampedAccount
		return contestedAccount{
			read:  s.read,
			write: func(_ context.Context, compute func(account) account) error { s.write(compute); return nil },
			end:   s.load,
		}
	}},
	{"rwlock.Snapshot", func() contestedAccount {
		var s rwlock.Snapshot[account]
		return contestedAccount{
			read:  func(compute func(account) account) account { return compute(s.Load()) },
			write: func(_ context.Context, compute func(account) account) error { s.Update(compute); return nil },
			end:   s.Load,
		}
	}},
	{"cas.Versioned", func() contestedAccount {
		var v cas.Versioned[account]
		load := func() account { a, _ := v.Load(); return a }
		return contestedAccount{
			read: func(compute func(account) account) account { return compute(load()) },
			write: func(ctx context.Context, compute func(account) account) error {
				return withVersion(ctx,
					&v, compute)
			},
			end: load,
		}
	}},
}

// locked guards an account by the two sides of a lock, which may be the same.
func locked(readers, writers sync.Locker) contestedAccount {
	var a account
	return contestedAccount{
		read: func(compute func(account) account) account {
			readers.Lock()
			defer readers.Unlock()
			return compute(a)
		},
		write: func(_ context.Context, compute func(account) account) error {
			pessimistic(writers, &a, compute)
			return nil
		},
		end: func() account { return a },
	}
}

type mixture struct {
	rate           float64 // operations a second
	commits, reads float64 // computations for each write, and for each read
}

// mix measures one kind of lock with one share of writes.
func mix(ctx context.Context, l *lab.Lab, a contestedAccount, share float64, d time.Duration) (mixture, error) {
	var stop, failed, torn atomic.Bool
	var total, wrote, writing, reading atomic.Int64
	goroutines := 2 * runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		rnd := rand.New(rand.NewPCG(l.Rand.Uint64(), 0))
		wg.Go(func() {
			var ops, writes, computed, computedToRead int64
			compute := func(a account) account {
				computed++
				// The scheduler may come in between at any moment. Here it always does, or else
				// goroutines that share a processor would hardly ever meet.
				bench.Work(400 * time.Nanosecond)
				runtime.Gosched()
				bench.Work(400 * time.Nanosecond)
				return account{a.balance + 1, a.changes + 1}
			}
			for !stop.Load() {
				ops++
				if rnd.Float64() < share {
					writes++
					if err := a.write(ctx, compute); err != nil {
						failed.Store(true)
						return
					}
					continue
				}
				before := computed
				if got := a.read(compute); got.balance != got.changes {
					torn.Store(true)
				}
				computedToRead += computed - before
			}
			total.Add(ops)
			wrote.Add(writes)
			writing.Add(computed - computedToRead)
			reading.Add(computedToRead)
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	elapsed := time.Since(start)
	if failed.Load() {
		return mixture{}, errors.Join(errors.New("an update failed"), ctx.Err())
	}
	l.Equal(account{wrote.Load(), wrote.Load()}, a.end(), lab.T("no change is lost with any of them, at any "+
		"share of writes", "无论写操作的比例如何，每一种都不丢失改动"))
	l.Check(!torn.Load(), lab.T("no read that counts saw half of a change",
		"有效的读都没有看到只改了一半的数据"))
	return mixture{
		rate:    float64(total.Load()) / elapsed.Seconds(),
		commits: float64(writing.Load()) / float64(max(wrote.Load(), 1)),
		reads:   float64(reading.Load()) / float64(max(total.Load()-wrote.Load(), 1)),
	}, nil
}

// conflict shows one conflict, for certain.
func conflict(ctx context.Context, l *lab.Lab) {
	t := l.Timeline(lab.T("A conflict",
		"一次冲突"), lab.T("Both compute from the same version. The second to commit finds another "+
		"version, and computes again.", "双方从同一个版本开始计算。后提交的一方发现版本变了，重新计算。"))
	v := cas.NewVersioned(account{balance: 100})
	var both sync.WaitGroup
	both.Add(2)
	computed := [2]int{}
	committed := make(chan struct{})
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(lab.Same(name), func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			err := withVersion(ctx, v, func(a account) account {
				if computed[i]++; computed[i] == 1 {
					both.Done()
					both.Wait()
				}
				me.Mark(lab.T("reads %d", "读到 %d"), a.balance)
				me.Is(lab.Shared, lab.T("computes, without a lock", "不加锁地计算"),
					func() { me.Work(time.Duration(3+2*i) * time.Millisecond) })
				if i == 1 {
					<-committed
				}
				return account{a.balance - 10, a.changes + 1}
			})
			me.Mark(lab.T("commits", "提交"))
			if i == 0 {
				close(committed)
			}
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	end, version := v.Load()
	l.Equal([2]int{1, 2}, computed, lab.T("the second one to commit computes again", "后提交的一方重新计算"))
	l.Equal(account{80, 2}, end, lab.T("both changes count", "两次改动都算数"))
	l.Check(!v.CompareAndSwap(version-1, account{}), lab.T("an old version commits nothing", "旧版本不能提交"))
	_, err := v.Update(ctx, func(account) (account, error) { return account{}, errNoLuck })
	l.Is(errNoLuck, err, lab.T("an error of the computation commits nothing", "计算出错时什么也不提交"))
}
