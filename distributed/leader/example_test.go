package leader_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/named"
)

// job is one entry of a small cron table.
type job struct {
	name  string
	every time.Duration
	run   func(ctx context.Context, token uint64) error
}

// schedule runs each job when its time comes, until ctx ends or a job fails.
func schedule(ctx context.Context, jobs []job) error {
	hold, leased := locks.HoldFrom(ctx)
	next := make([]time.Time, len(jobs))
	for i, j := range jobs {
		next[i] = time.Now().Add(j.every)
	}
	for {
		first := 0
		for i := range next {
			if next[i].Before(next[first]) {
				first = i
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(next[first])):
		}
		if ctx.Err() != nil { // also if both were ready
			return context.Cause(ctx)
		}
		var token uint64
		if leased { // the lock of a store
			if err := hold.Err(); err != nil {
				return err
			}
			token = hold.Token() // for the resource that the job writes to
		}
		if err := jobs[first].run(ctx, token); err != nil {
			return fmt.Errorf("%s: %w", jobs[first].name, err)
		}
		next[first] = next[first].Add(jobs[first].every)
	}
}

// A scheduler like cron, which runs in every process of a service. Only the leader starts jobs.
// Replace the provider by a client of a store.
func Example() {
	var provider locks.Provider = new(named.Provider)
	ctx, shutdown := context.WithCancel(context.Background())
	mails := 0
	jobs := []job{
		{"mail", 10 * time.Millisecond, func(context.Context, uint64) error {
			mails++
			fmt.Println("send mails")
			if mails == 3 {
				shutdown()
			}
			return nil
		}},
		{"backup", time.Hour, func(context.Context, uint64) error { return errors.New("disk full") }},
	}
	err := leader.Run(ctx, provider.Locker("cron"),
		func(ctx context.Context) error { return schedule(ctx, jobs) },
		leader.WithOnGained(func(context.Context) { fmt.Println("this process leads") }),
		leader.WithOnLost(func(reason error) { fmt.Println("this process leads no longer:", reason) }),
		leader.WithOnError(func(err error) { fmt.Println("campaign:", err) }),
	)
	fmt.Println(err)
	// Output:
	// this process leads
	// send mails
	// send mails
	// send mails
	// this process leads no longer: leader: run: context canceled
	// leader: run: context canceled
}

// A process gives up the leadership for a deployment. Meanwhile another process leads.
func ExampleElection_Resign() {
	provider := new(named.Provider)
	ctx, shutdown := context.WithCancel(context.Background())
	old := leader.New(provider.Locker("cron"))
	began, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = old.Run(ctx, func(ctx context.Context) error {
			fmt.Println("the old process leads")
			close(began)
			<-ctx.Done()
			fmt.Println("the old process ends its work:", context.Cause(ctx))
			return nil
		})
	}()
	<-began
	old.Resign(time.Hour)
	_ = leader.Run(ctx, provider.Locker("cron"), func(context.Context) error {
		fmt.Println("the new process leads")
		return nil
	})
	shutdown()
	<-ended
	// Output:
	// the old process leads
	// the old process ends its work: leader: resigned
	// the new process leads
}

// The process that leads, of all processes. A process that never runs may ask too.
func ExampleElection_Leader() {
	lock := new(named.Provider).Locker("cron")
	show := func() {
		party, ok, err := leader.New(lock).Leader(context.Background())
		fmt.Println("is there a leader:", ok, "of this process:", party.Owner != 0, "error:", err)
	}
	show()
	_ = leader.Run(context.Background(), lock, func(context.Context) error {
		show()
		return nil
	})
	// Output:
	// is there a leader: false of this process: false error: <nil>
	// is there a leader: true of this process: true error: <nil>
}
