package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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
	Lesson:   110,
	Name:     "optimistic",
	Topic:    "Without a lock",
	Title:    "Pessimistic and optimistic, as writes become more frequent",
	Question: `Should a program lock first, or check at the end whether there was a writer?`,
	Claim: `A pessimistic lock comes first, and the reads and writes after it. An optimistic program reads a value
and its version, computes, and commits only if the version is still the same. If not, it discards the
work and starts again. Databases do it with a version column, processors with compare-and-swap.

Optimism pays off if conflicts are rare. It changes one variable only: data that belongs together has to
be one value. Readers can be optimistic while writers lock. A reader of a stamped lock acquires nothing,
and checks at its end whether a writer came in between. Or versions never change, and a reader keeps the
version that it has.`,
	Look: "In the picture both goroutines compute at the same time, one commits, and the other has to " +
		"compute again. In the charts the lines lead from reads only, on the left, to writes only, on the " +
		"right. They show throughput, and how many computations each result takes. Every computation " +
		"yields half way through, so that goroutines meet on any number of processors.\n\n" +
		"With `cas.Versioned` readers and writers are optimistic. With `rwlock.StampedLock` and " +
		"`rwlock.Snapshot` only the readers are, and the writers take turns.",
	Found: `Best with reads only: {{.bestRead}}. Best with one write in ten: {{.bestTenth}}. Best with writes
only: {{.bestWrite}}. Which one was ahead as writes became more frequent? Of cas.Versioned and reentrant.Mutex:
{{.crossing}}. Of rwlock.StampedLock and rwlock.RWMutex: {{.crossingStamped}}. With writes only,
cas.Versioned computed {{index .attempts}} times for each commit; with one write in ten, a reader of
rwlock.StampedLock computed {{index .reads}} times for each result. Each ended with as many changes as were made.`,
	Take: "For frequent reads use `rwlock.Snapshot` or `cas.Versioned` for one value, and " +
		"`rwlock.StampedLock` for a few atomic fields. For writes that are short computations use " +
		"`cas.Versioned`. For long computations that often collide use a lock, so that the work is done " +
		"once. For effects outside the value, such as a sent message, always use a lock, because a retry " +
		"would repeat them.",
	Java: `AtomicReference<Account> account = ...;
account.updateAndGet(a -> a.withdraw(amount));    // may run several times

UPDATE account SET ..., version = version + 1
WHERE id = ? AND version = ?                      -- 0 rows: start over

long stamp = lock.tryOptimisticRead();            // StampedLock
Account a = read();
if (!lock.validate(stamp)) { ... readLock() ... }`,
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
	writers, readers := lab.Series{Name: "cas.Versioned, for each " +
		"commit"}, lab.Series{Name: "rwlock.StampedLock, for each read"}
	best := map[float64]string{}
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
		var ahead []string
		for i, c := range contestedAccounts {
			throughput[i].Name = c.name
			throughput[i].Points = append(throughput[i].Points, lab.Point{X: share, Y: rates[i]})
			if rates[i]*level >= slices.Max(rates) {
				ahead = append(ahead, c.name)
			}
		}
		best[share] = strings.Join(ahead, ", ")
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
	l.Observe("bestRead", best[0])
	l.Observe("bestTenth", best[tenth])
	l.Observe("bestWrite", best[1])
	const mutex, rw, stamped, versioned = 0, 1, 2, 4
	l.Observe("crossing", crossing(inverse(throughput[versioned]), inverse(throughput[mutex]), lab.Percent))
	l.Observe("crossingStamped", crossing(inverse(throughput[stamped]), inverse(throughput[rw]), lab.Percent))
	writes := lab.Axis{Label: "share of writes", Unit: lab.Percent}
	l.Chart(lab.Chart{Title: "Throughput over the share of writes", X: writes,
		Y: lab.Axis{Label: "operations", Unit: lab.Rate}, Series: throughput,
		Desc: "Operations a second, all goroutines together, over the share of operations that write. " +
			"Higher is better."})
	l.Chart(lab.Chart{Title: "Computations for each result", X: writes, Y: lab.Axis{Label: "computations"},
		Series: []lab.Series{writers, readers},
		Desc: "How often the optimistic writer computes until it can commit, and the optimistic reader " +
			"until its result counts, over the share of writes. More than one is work in vain."})
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
	l.Equal(account{wrote.Load(), wrote.Load()}, a.end(), "no change is lost with any of them, at any "+
		"share of writes")
	l.Check(!torn.Load(), "no read that counts saw half of a change")
	return mixture{
		rate:    float64(total.Load()) / elapsed.Seconds(),
		commits: float64(writing.Load()) / float64(max(wrote.Load(), 1)),
		reads:   float64(reading.Load()) / float64(max(total.Load()-wrote.Load(), 1)),
	}, nil
}

// conflict shows one conflict, for certain.
func conflict(ctx context.Context, l *lab.Lab) {
	t := l.Timeline("A conflict", "Both compute from the same version. The second to commit finds another "+
		"version, and computes again.")
	v := cas.NewVersioned(account{balance: 100})
	var both sync.WaitGroup
	both.Add(2)
	computed := [2]int{}
	committed := make(chan struct{})
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			err := withVersion(ctx, v, func(a account) account {
				if computed[i]++; computed[i] == 1 {
					both.Done()
					both.Wait()
				}
				me.Mark("reads %d", a.balance)
				me.Is(lab.Shared, "computes, without a lock",
					func() { me.Work(time.Duration(3+2*i) * time.Millisecond) })
				if i == 1 {
					<-committed
				}
				return account{a.balance - 10, a.changes + 1}
			})
			me.Mark("commits")
			if i == 0 {
				close(committed)
			}
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	end, version := v.Load()
	l.Equal([2]int{1, 2}, computed, "the second one to commit computes again")
	l.Equal(account{80, 2}, end, "both changes count")
	l.Check(!v.CompareAndSwap(version-1, account{}), "an old version commits nothing")
	_, err := v.Update(ctx, func(account) (account, error) { return account{}, errNoLuck })
	l.Is(errNoLuck, err, "an error of the computation commits nothing")
}
