//go:build linux || darwin

package shmlock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/shmlock"
)

// work runs under the lock of the file at path, which should be in memory: /dev/shm on Linux.
func work(ctx context.Context, path string) error {
	counter, err := shmlock.Open(path)
	if err != nil {
		return err
	}
	defer counter.Close(ctx)
	return locks.Do(ctx, counter, func(ctx context.Context) error {
		if counter.Recovered(ctx) {
			fmt.Println("The last holder died: repair what it left.")
		}
		fmt.Println("One process works.")
		return nil
	})
}

func ExampleMutex() {
	dir, err := os.MkdirTemp("", "shmlock")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	fmt.Println(work(context.Background(), filepath.Join(dir, "counter")))
	// Output:
	// One process works.
	// <nil>
}
