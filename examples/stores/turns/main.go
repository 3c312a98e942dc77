// Command turns runs two processes that take turns under a file lock. Each prints when it holds
// the lock, and with which fencing token. Then the program kills one of them while it holds the
// lock, and the other process goes on.
//
//	go run ./examples/stores/turns
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func main() {
	run := parent
	if len(os.Args) == 4 {
		run = func() error { return child(os.Args[1], os.Args[2], os.Args[3]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parent() error {
	dir, err := os.MkdirTemp("", "turns")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	start := func(name, turns string) (*exec.Cmd, error) {
		c := exec.Command(self, dir, name, turns)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		return c, c.Start()
	}
	a, err := start("A", "5")
	if err != nil {
		return err
	}
	b, err := start("B", "5")
	if err != nil {
		a.Process.Kill()
		return err
	}
	if err := b.Wait(); err != nil {
		return err
	}
	if err := a.Wait(); err != nil {
		return err
	}
	if a, err = start("A", "dies"); err != nil {
		return err
	}
	for { // wait until it holds the lock
		if _, err := os.Stat(filepath.Join(dir, "held")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if b, err = start("B", "1"); err != nil {
		a.Process.Kill()
		return err
	}
	time.Sleep(300 * time.Millisecond) // B waits
	fmt.Println("A is killed while it holds the lock")
	a.Process.Kill()
	a.Wait()
	return b.Wait()
}

func child(dir, name, turns string) error {
	client, err := filelock.New(dir, filelock.WithTokens())
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer client.Close(ctx)
	lock := client.Mutex("orders")
	turn := func(ctx context.Context) error {
		h, err := lock.Hold(ctx)
		if err != nil {
			return err
		}
		now := time.Now().Format("05.000")
		fmt.Printf("%s  process %d, %s, has the lock, token %d\n", now, os.Getpid(), name, h.Token())
		if turns == "dies" {
			if err := os.WriteFile(filepath.Join(dir, "held"), nil, 0o600); err != nil {
				return err
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(30 * time.Millisecond)
		return nil
	}
	n := 1
	if turns != "dies" {
		fmt.Sscan(turns, &n)
	}
	for range n {
		if err := locks.Do(ctx, lock, turn); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
	return nil
}
