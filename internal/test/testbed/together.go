package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// LockTogether is the part of a [Child] whose test calls [AcquireTogether]: it acquires l again and
// again, beside the other processes.
func LockTogether(ctx context.Context, l locks.TryLocker, rounds int) error {
	fmt.Println("ready")
	var word string
	if _, err := fmt.Scanln(&word); err != nil {
		return err
	}
	for range rounds {
		err := locks.Do(ctx, l, func(context.Context) error {
			time.Sleep(time.Millisecond)
			return nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// AcquireTogether has processes acquire their locks beside each other, by [LockTogether]. It
// returns when all of them are done.
func AcquireTogether(processes ...*Process) {
	for _, p := range processes {
		require.Equal(p.tb, "ready", p.Line())
	}
	for _, p := range processes {
		p.Say("go")
	}
	for _, p := range processes {
		require.Equal(p.tb, "done", p.Line())
		require.True(p.tb, p.Wait())
	}
}
