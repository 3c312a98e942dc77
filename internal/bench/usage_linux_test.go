package bench

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const childEnv = "BENCH_BUSY_CHILD"

// TestBusyChild is the other process of the tests below. It takes so much processor time.
func TestBusyChild(t *testing.T) {
	limit, _ := time.ParseDuration(os.Getenv(childEnv))
	for TakeUsage().mine < limit {
	}
}

func TestProcessorTimeOfOthersIsSeen(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestBusyChild$")
	child.Env = append(os.Environ(), childEnv+"=1h")
	before := TakeUsage()
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	require.Eventually(t, func() bool {
		busy := TakeUsage().Since(before)
		require.True(t, busy.Known)
		return busy.Others > 0.2/float64(runtime.NumCPU()) // a fifth of one processor, if this one is busy
	}, time.Minute, 100*time.Millisecond)
}

func TestOwnProcessorTimeIsNotThatOfOthers(t *testing.T) {
	before := TakeUsage()
	u := TakeUsage()
	for ; u.mine-before.mine < 50*time.Millisecond; u = TakeUsage() {
		require.True(t, u.known)
	}
	u.all = before.all + (u.mine - before.mine) // an idle machine
	assert.Zero(t, u.Since(before).Others)
	u.all += u.at.Sub(before.at) * time.Duration(runtime.NumCPU()) / 10
	assert.True(t, u.Since(before).TooBig, "others had a tenth of all processors")
}

func TestProcessorTimeOfEndedToolsIsTheirOwn(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestBusyChild$")
	child.Env = append(os.Environ(), childEnv+"=300ms")
	before := TakeUsage()
	require.NoError(t, child.Run())
	assert.Greater(t, TakeUsage().mine-before.mine, 290*time.Millisecond)
}
