//go:build linux || darwin

package filelock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

// The folder should be in memory: /dev/shm on Linux.
func ExampleMapped() {
	dir, err := os.MkdirTemp("", "filelock")
	must(err)
	defer os.RemoveAll(dir)
	var counter *filelock.Mapped
	counter, err = filelock.OpenMapped(filepath.Join(dir, "counter"))
	must(err)
	ctx := context.Background()
	defer counter.Close(ctx)

	err = locks.Do(ctx, counter, func(ctx context.Context) error {
		if counter.Recovered(ctx) {
			fmt.Println("The last holder died: repair what it left.")
		}
		fmt.Println("One process works.")
		return nil
	})
	fmt.Println(err)
	// Output:
	// One process works.
	// <nil>
}
