package redisson

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// stressVariable says for how long the mixed load lasts: 10m, say.
const stressVariable = "REDISSON_STRESS"

const (
	crowd = 2                    // threads and goroutines for each kind of lock
	pause = 2 * time.Millisecond // the longest between two holds
)

// stress is what the Java side does as well: it takes the lock again and again, up to three times
// at once. Inside, it leaves a mark that nobody else may have left, and increments a counter
// without any protection. It returns how often it was inside.
func stress(ctx context.Context, conn *redis.Client, kind, name string, l locks.TryLocker) (n int, err error) {
	me := fmt.Sprint("go ", locks.CurrentOwner(ctx))
	for ctx.Err() == nil {
		depth := rand.IntN(3) + 1
		for range depth {
			wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
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

// mixedLoad has both sides take locks of all kinds at the same time.
func mixedLoad(t *testing.T, s *stage, d time.Duration) {
	if text := os.Getenv(stressVariable); text != "" {
		var err error
		d, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	c := s.open(t, long)
	conn := connect(t, s.addr)
	base := fresh()
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(background, d)
	defer cancel()
	var mu sync.Mutex
	ours, theirs := make(map[string]int), make(map[string]int)
	for _, kind := range append(kinds, "multi") {
		name := base + kind
		l := locks.TryLocker(nil)
		arg := name
		switch kind {
		case "multi":
			arg = name + "a," + name + "b"
			l = locks.Multi(c.Mutex(name+"a"), c.Mutex(name+"b"))
		case "read", "write":
			name = base + "rw"
			arg = name
			l = lockOf(c, kind, name)
		default:
			l = lockOf(c, kind, name)
		}
		for i := range crowd {
			wg.Go(func() {
				n, err := stress(locks.WithOwner(ctx, locks.NewOwner()), conn, kind, arg, l)
				if err != nil {
					t.Errorf("Go, %s: %v", kind, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ours[kind] += n
			})
			answer := s.java.start(fmt.Sprint(base, kind, i), "stress", kind, arg, d.Milliseconds(),
				pause.Microseconds())
			wg.Go(func() {
				text := <-answer
				n, err := strconv.Atoi(text)
				if err != nil {
					t.Errorf("Java, %s: %s", kind, text)
				}
				mu.Lock()
				defer mu.Unlock()
				theirs[kind] += n
			})
		}
	}
	wg.Wait()
	for _, kind := range append(kinds, "multi") {
		t.Logf("%-7s %6d by Go, %6d by Java", kind, ours[kind], theirs[kind])
	}
	if t.Failed() {
		return
	}
	for _, kind := range append(kinds, "multi") {
		all := ours[kind] + theirs[kind]
		name := base + kind
		switch kind {
		case "multi":
			name += "a," + name + "b"
		case "write":
			name = base + "rw"
		}
		if kind != "read" {
			n, err := conn.Get(background, name+":counter").Int()
			require.NoError(t, err)
			require.Equal(t, all, n, "increments of %s", kind)
			conn.Del(background, name+":counter")
		}
		require.GreaterOrEqual(t, 5*ours[kind], all, "the share of Go in %s, %d of %d", kind, ours[kind], all)
		require.GreaterOrEqual(t, 5*theirs[kind], all, "the share of Java in %s, %d of %d", kind, theirs[kind], all)
	}
}
