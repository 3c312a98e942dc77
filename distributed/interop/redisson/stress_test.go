package redisson

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

// stressVariable says how long a round of the mixed load lasts: 10m, say.
const stressVariable = "REDISSON_STRESS"

const (
	tasks = 2                    // threads and goroutines for each kind of lock
	pause = 2 * time.Millisecond // the longest between two holds
)

// stress does the same as the Java side: it takes the lock again and again, up to three times at
// once. Inside, it leaves a mark that nobody else may have left, and increments a counter without
// any protection. It returns how often it was inside.
func stress(ctx context.Context, conn *redis.Client, kind, name string, l locks.TryLocker) (n int, err error) {
	me := fmt.Sprint("go ", locks.CurrentOwner(ctx))
	for ctx.Err() == nil {
		depth := rand.IntN(3) + 1
		for range depth {
			wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			err := l.LockContext(wait)
			cancel()
			if err != nil {
				return n, err
			}
		}
		if kind == "read" {
			if other, err := conn.Get(background, name+":inside").Result(); err != redis.Nil {
				return n, fmt.Errorf("a reader met %q, %v", other, err)
			}
		} else {
			if other, err := conn.SetArgs(background, name+":inside", me,
				redis.SetArgs{Get: true}).Result(); err != redis.Nil {
				return n, fmt.Errorf("met %q, %v", other, err)
			}
			value, err := conn.Get(background, name+":counter").Int()
			if err != nil && err != redis.Nil {
				return n, err
			}
			if err := conn.Set(background, name+":counter", value+1, 0).Err(); err != nil {
				return n, err
			}
			if mine, err := conn.GetDel(background, name+":inside").Result(); mine != me {
				return n, fmt.Errorf("somebody else was inside: %q, %v", mine, err)
			}
		}
		for range depth {
			if err := l.UnlockContext(ctx); err != nil {
				return n, err
			}
		}
		if err := l.UnlockContext(ctx); !errors.Is(err, locks.ErrNotHeld) {
			return n, fmt.Errorf("one unlock too many: %w", err)
		}
		n++
		time.Sleep(rand.N(pause))
	}
	return n, nil
}

// longestLoad is how long a load goes on at most until each side has its share. In its first
// seconds the Java side compiles itself, and gets less, above all on a busy machine.
const longestLoad = 2 * patience

// mixedLoad lets both sides take locks of all kinds at the same time, in rounds that last for d.
// Each side has at least a fifth of the acquisitions of each kind in all rounds together.
func mixedLoad(t *testing.T, s *stage, d time.Duration) {
	if text := os.Getenv(stressVariable); text != "" {
		var err error
		d, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	l := mixture{stage: s, c: s.open(t, long), conn: connect(t, s.addr), base: fresh(),
		ours: make(map[string]int), theirs: make(map[string]int)}
	kinds := append(slices.Clone(kinds), "multi")
	for n := 1; ; n++ {
		l.round(t, kinds, d)
		if t.Failed() {
			return
		}
		var short string // the last one of too few
		for _, kind := range kinds {
			all := l.ours[kind] + l.theirs[kind]
			if name := l.guarded(kind); kind != "read" {
				n, err := l.conn.Get(background, name+":counter").Int()
				require.NoError(t, err)
				require.Equal(t, all, n, "increments of %s", kind)
			}
			if 5*min(l.ours[kind], l.theirs[kind]) < all {
				short = fmt.Sprintf("%s, %d of %d", kind, min(l.ours[kind], l.theirs[kind]), all)
			}
		}
		if short == "" {
			break
		}
		require.Less(t, time.Duration(n)*d, longestLoad, "one side has less than a fifth: %s", short)
	}
	for _, kind := range kinds {
		l.conn.Del(background, l.guarded(kind)+":counter")
	}
}

// mixture is the state that the rounds of a mixed load share.
type mixture struct {
	*stage
	c    *redislock.Client
	conn *redis.Client
	base string // what the names of the locks begin with

	mu           sync.Mutex
	ours, theirs map[string]int // acquisitions by kind, in all rounds so far
}

// guarded returns what the names of a mark and of a counter begin with, which a kind of lock
// guards. It is also the name of the lock, or the names of a multi-lock.
func (l *mixture) guarded(kind string) string {
	switch kind {
	case "multi":
		return l.base + kind + "a," + l.base + kind + "b"
	case "read", "write":
		return l.base + "rw"
	}
	return l.base + kind
}

// lock returns the lock of a kind.
func (l *mixture) lock(kind string) locks.TryLocker {
	if kind == "multi" {
		a, b, _ := strings.Cut(l.guarded(kind), ",")
		return locks.Multi(l.c.Mutex(a), l.c.Mutex(b))
	}
	return lockOf(l.c, kind, l.guarded(kind))
}

// round is one round of the load.
func (l *mixture) round(t *testing.T, kinds []string, d time.Duration) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(background, d)
	defer cancel()
	for _, kind := range kinds {
		arg, lock := l.guarded(kind), l.lock(kind)
		for i := range tasks {
			wg.Go(func() {
				n, err := stress(locks.WithOwner(ctx, locks.NewOwner()), l.conn, kind, arg, lock)
				if err != nil {
					t.Errorf("Go, %s: %v", kind, err)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				l.ours[kind] += n
			})
			answer := l.java.start(fmt.Sprint(l.base, kind, i), "stress", kind, arg, d.Milliseconds(),
				pause.Microseconds())
			wg.Go(func() {
				text := <-answer
				n, err := strconv.Atoi(text)
				if err != nil {
					t.Errorf("Java, %s: %s", kind, text)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				l.theirs[kind] += n
			})
		}
	}
	wg.Wait()
	for _, kind := range kinds {
		t.Logf("%-7s %6d by Go, %6d by Java", kind, l.ours[kind], l.theirs[kind])
	}
}
