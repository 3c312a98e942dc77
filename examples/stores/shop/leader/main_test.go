package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/named"
)

// asProgram makes the test's binary act as the program.
const asProgram = "SHOP_LEADER_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestAKilledLeadersSuccessorLeads(t *testing.T) {
	dir := t.TempDir()
	lines := make(chan string)
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-dir", dir, "-every", "5ms")
		cmd.Env = append(os.Environ(), asProgram+"=1")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var reading sync.WaitGroup
		reading.Go(func() {
			for scan := bufio.NewScanner(out); scan.Scan(); {
				select {
				case lines <- scan.Text():
				case <-t.Context().Done():
				}
			}
		})
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			reading.Wait()
			_ = cmd.Wait()
		})
		return cmd
	}
	report := func(cmd *exec.Cmd) string { return fmt.Sprintf("process %d sends the reminders", cmd.Process.Pid) }

	first := start()
	require.Equal(t, report(first), <-lines)
	second := start()
	for range 20 {
		require.Equal(t, report(first), <-lines)
	}
	require.NoError(t, first.Process.Kill())
	for line := range lines { // the lines that the first process wrote before
		if line != report(first) {
			require.Equal(t, report(second), line)
			break
		}
	}
}

func TestALeaderThatLostTheLockLeadsAgain(t *testing.T) {
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := redislock.New(rdb, redislock.WithTTL(300*time.Millisecond))
	require.NoError(t, err)
	defer client.Close(context.Background())

	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, stop := context.WithCancel(t.Context())
	jobs := make(chan context.Context)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = lead(ctx, client, tick.C, func(ctx context.Context) error {
			jobs <- ctx
			return nil
		})
	}()
	first := <-jobs
	server.Del("cron")
	var next context.Context
	for next = <-jobs; first.Err() == nil || next.Err() != nil; next = <-jobs {
	}
	require.NoError(t, next.Err())
	stop()
	for {
		select {
		case <-jobs:
			continue
		case <-done:
			return
		}
	}
}

func TestTheNextTickRepeatsAFailedJob(t *testing.T) {
	tick := make(chan time.Time)
	ctx, stop := context.WithCancel(t.Context())
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		_ = lead(ctx, new(named.Provider), tick, func(context.Context) error {
			if n++; n == 4 {
				stop()
			}
			return errors.New("no mail server")
		})
	}()
	for range 4 {
		tick <- time.Time{}
	}
	<-done
	require.Equal(t, 4, n)
}

func TestNoJobBeginsAfterTheEnd(t *testing.T) {
	tick := make(chan time.Time)
	close(tick) // always ready
	for range 50 {
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		_ = lead(ctx, new(named.Provider), tick, func(context.Context) error {
			n++
			stop()
			return nil
		})
		require.Equal(t, 1, n)
	}
}
