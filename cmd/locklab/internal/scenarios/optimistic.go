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

	"github.com/jucgo/locks/bench"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

var _ = register(lab.Scenario{
	Lesson:   110,
	Name:     "optimistic",
	Topic:    "Without a lock",
	Title:    "Pessimistic and optimistic, as writes become more frequent",
	Question: "Lock first, or look at the end whether somebody else was there?",
	Claim: `A pessimistic lock assumes the worst: lock first, then read and write. An optimistic one reads a value and its version, computes, and commits only if the version is still the same; if not, the work was in vain, and is done again. Databases do it with a version column, processors with compare-and-swap.

The fewer the conflicts, the better for optimism. It changes one variable only: what belongs together has to be one value.`,
	Look:  "In the picture both compute at the same time, one commits, and the other has to compute again. In the charts, follow the lines from left, only reads, to right, only writes: throughput, and how many computations each commit takes. Every computation gives way to others half way through, so that they meet however many processors there are.",
	Found: `Best with reads only: {{.bestRead}}. Best with writes only: {{.bestWrite}}. With writes only, cas.Versioned computed {{index .attempts}} times for each commit. All locks ended with as many changes as were made.`,
	Take:  "Mostly reads, short computations, one value: `cas.Versioned`. Long computations that often collide: a lock, so that the work is done once. Effects outside the value, such as a message sent: always a lock, as a retry would do them twice.",
	Java: `AtomicReference<Account> account = ...;
account.updateAndGet(a -> a.withdraw(amount));    // may run several times

UPDATE account SET ..., version = version + 1
WHERE id = ? AND version = ?                      -- 0 rows: start over`,
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

// withVersion computes without a lock, and again if somebody else committed meanwhile.
func withVersion(ctx context.Context, a *cas.Versioned[account], compute func(account) account) error {
	_, err := a.Update(ctx, func(old account) (account, error) { return compute(old), nil })
	return err
}

//lab:end

func optimistic(ctx context.Context, l *lab.Lab) error {
	conflict(ctx, l)
	shares := lab.Pick(l, []float64{0, 0.1, 0.5, 1}, []float64{0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1})
	slot := lab.Pick(l, 15*time.Millisecond, 40*time.Millisecond)
	rounds := lab.Pick(l, 2, 4)
	kinds := []string{"reentrant.Mutex", "rwlock.RWMutex", "cas.Versioned"}
	throughput := make([]lab.Series, len(kinds))
	attempts := lab.Series{Name: "cas.Versioned"}
	best := map[float64]string{}
	for _, share := range shares {
		// Of several rounds the best counts: whatever disturbs makes it slower.
		rates := make([]float64, len(kinds))
		computed := 0.0
		for range rounds {
			for i, kind := range kinds {
				m, err := mix(ctx, l, kind, share, slot)
				if err != nil {
					return fmt.Errorf("%s with %v writes: %w", kind, share, err)
				}
				rates[i] = max(rates[i], m.rate)
				if kind == "cas.Versioned" {
					computed += m.attempts / float64(rounds)
				}
			}
		}
		for i, kind := range kinds {
			throughput[i].Name = kind
			throughput[i].Points = append(throughput[i].Points, lab.Point{X: share, Y: rates[i]})
			if rates[i] == slices.Max(rates) {
				best[share] = kind
			}
		}
		if share > 0 {
			attempts.Points = append(attempts.Points, lab.Point{X: share, Y: computed})
			l.Observe("attempts", computed)
		}
	}
	l.Observe("bestRead", best[0])
	l.Observe("bestWrite", best[1])
	writes := lab.Axis{Label: "share of writes", Unit: lab.Percent}
	l.Chart(lab.Chart{Title: "Throughput over the share of writes", X: writes, Y: lab.Axis{Label: "operations", Unit: lab.Rate}, Series: throughput,
		Desc: "Operations a second, all goroutines together, over the share of operations that write. Higher is better."})
	l.Chart(lab.Chart{Title: "Computations for each commit", X: writes, Y: lab.Axis{Label: "computations"}, Series: []lab.Series{attempts},
		Desc: "How often the optimistic writer computes until it can commit, over the share of writes. More than one is work in vain."})
	return nil
}

type mixture struct {
	rate     float64 // operations a second
	attempts float64 // computations for each write
}

// mix measures one kind of lock with one share of writes.
func mix(ctx context.Context, l *lab.Lab, kind string, share float64, d time.Duration) (mixture, error) {
	var (
		mu    reentrant.Mutex
		rw    rwlock.RWMutex
		plain account
		v     cas.Versioned[account]
	)
	var stop atomic.Bool
	var writes, computed, ops atomic.Int64
	var failed atomic.Bool
	compute := func(a account) account {
		// The scheduler may come in between at any moment. Here it always does, or else
		// goroutines that share a processor would hardly ever meet.
		bench.Work(400 * time.Nanosecond)
		runtime.Gosched()
		bench.Work(400 * time.Nanosecond)
		return account{a.balance + 1, a.changes + 1}
	}
	goroutines := 2 * runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		rnd := rand.New(rand.NewPCG(l.Rand.Uint64(), 0))
		wg.Go(func() {
			var done, wrote, tries int64
			for !stop.Load() {
				done++
				write := rnd.Float64() < share
				if write {
					wrote++
				}
				switch {
				case kind == "cas.Versioned" && write:
					err := withVersion(ctx, &v, func(a account) account { tries++; return compute(a) })
					if err != nil {
						failed.Store(true)
						return
					}
				case kind == "cas.Versioned":
					a, _ := v.Load()
					compute(a)
				case kind == "rwlock.RWMutex" && !write:
					rw.RLock()
					compute(plain)
					rw.RUnlock()
				case kind == "rwlock.RWMutex":
					pessimistic(&rw, &plain, compute)
				case write:
					pessimistic(&mu, &plain, compute)
				default:
					mu.Lock()
					compute(plain)
					mu.Unlock()
				}
			}
			ops.Add(done)
			writes.Add(wrote)
			computed.Add(tries)
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	elapsed := time.Since(start)
	if failed.Load() {
		return mixture{}, errors.Join(errors.New("an update failed"), ctx.Err())
	}
	end := plain
	if kind == "cas.Versioned" {
		end, _ = v.Load()
	}
	l.Equal(account{writes.Load(), writes.Load()}, end, "no change is lost with any of them, at any share of writes")
	m := mixture{rate: float64(ops.Load()) / elapsed.Seconds(), attempts: 1}
	if writes.Load() > 0 {
		m.attempts = float64(computed.Load()) / float64(writes.Load())
	}
	return m, nil
}

// conflict shows one conflict, for certain.
func conflict(ctx context.Context, l *lab.Lab) {
	t := l.Timeline("A conflict", "Both compute from the same version. The second to commit finds another version, and computes again.")
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
				me.Is(lab.Shared, "computes, without a lock", func() { me.Work(time.Duration(3+2*i) * time.Millisecond) })
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
	l.Equal([2]int{1, 2}, computed, "who commits second computes again")
	l.Equal(account{80, 2}, end, "both changes count")
	l.Check(!v.CompareAndSwap(version-1, account{}), "an old version commits nothing")
	_, err := v.Update(ctx, func(account) (account, error) { return account{}, errNoLuck })
	l.Is(errNoLuck, err, "an error of the computation commits nothing")
}
