package filelock_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func TestADescriptorLocksTheFileUntilTheUnlock(t *testing.T) {
	client, err := filelock.New(t.TempDir())
	require.NoError(t, err)
	defer client.Close(t.Context())
	mu := client.Mutex("a")
	require.NoError(t, mu.LockContext(t.Context()))
	hold, err := mu.Hold(t.Context())
	require.NoError(t, err)
	inherit := hold.(interface{ Descriptor() (*os.File, error) })
	f, err := inherit.Descriptor()
	require.NoError(t, err)
	defer f.Close()
	try := func(command string) error {
		cmd := exec.Command("sh", "-c", command, "sh", mu.Path())
		cmd.ExtraFiles = []*os.File{f}
		return cmd.Run()
	}
	// An inherited lock can be taken again. Another descriptor of the file excludes it.
	require.NoError(t, try("flock -n 3"))
	require.Error(t, try(`flock -n "$1" true`))
	require.NoError(t, mu.UnlockContext(t.Context()))
	_, err = inherit.Descriptor()
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.NoError(t, try(`flock -n "$1" true`))
}
