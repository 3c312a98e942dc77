package redislock_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	logging.Disable() // of servers that are stopped on purpose
	testbed.Play(map[string]testbed.Role{
		"buy":          buy,
		"hold":         holder,
		"hold in turn": suite.HoldInTurn,
		"starve":       starve,
	})
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("12") // the tests sleep most of the time
	}
	goleak.VerifyTestMain(m,
		testbed.Children(),
		// A closed client finds that out within a second, when it was looking for its server.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// child opens, in a process of its own, the lock called it of the kind args[0] on the server
// args[1], with the lease args[2].
func child(args []string) (*lease.Mutex, func(), error) {
	d, err := time.ParseDuration(args[2])
	if err != nil {
		return nil, nil, err
	}
	conn := redis.NewClient(options(args[1], 3*time.Second))
	c, err := redislock.New(conn, term(d), redislock.WithFairWait(3*time.Second))
	if err != nil {
		return nil, nil, err
	}
	return anyKind[args[0]](c, "it").(*lease.Mutex), func() { c.Close(background); conn.Close() }, nil
}

func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) { return child(args) })
}

// holder acquires the lock and prints the token. For each line that it reads, it prints whether its
// hold is valid.
func holder(args []string) error {
	l, end, err := child(args)
	if err != nil {
		return err
	}
	defer end()
	if err := l.LockContext(background); err != nil {
		return err
	}
	h, err := l.Hold(background)
	if err != nil {
		return err
	}
	fmt.Println("held", h.Token())
	for {
		var line string
		if _, err := fmt.Scanln(&line); err != nil {
			return nil
		}
		// The first thing that the holder does after a pause.
		switch err := h.Err(); {
		case err == nil:
			fmt.Println("valid")
		case errors.Is(err, locks.ErrLost) && errors.Is(l.UnlockContext(background), locks.ErrLost):
			fmt.Println("lost")
		default:
			fmt.Println("?", err)
		}
	}
}

// starve holds the lock for args[3], while goroutines that never rest use up the process's time. It
// prints until when its hold was surely valid, in nanoseconds since 1970, and whether it is valid
// at the end.
func starve(args []string) error {
	l, end, err := child(args)
	if err != nil {
		return err
	}
	defer end()
	d, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	if err := l.LockContext(background); err != nil {
		return err
	}
	h, err := l.Hold(background)
	if err != nil {
		return err
	}
	fmt.Println("held")
	runtime.GOMAXPROCS(1)
	for range 8 {
		go func() {
			for i := 0; ; i++ {
				_ = strconv.Itoa(i)
			}
		}()
	}
	valid := time.Now()
	for began := valid; time.Since(began) < d; time.Sleep(time.Millisecond) {
		at := time.Now() // before it looks
		if h.Err() != nil {
			break
		}
		valid = at
	}
	state := "held"
	if h.Err() != nil {
		state = "lost"
		select {
		case <-h.Lost():
		case <-time.After(hang):
			state = "lost in silence"
		}
	}
	fmt.Println(valid.UnixNano())
	fmt.Println(state)
	os.Exit(0) // with the goroutines
	return nil
}
