package main

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const childEnv = "COMPARE_BUSY_CHILD"

// TestBusyChild is the other process of the test below.
func TestBusyChild(t *testing.T) {
	for os.Getenv(childEnv) != "" {
	}
}

func TestProcessorTimeOfOthersIsSeen(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestBusyChild$")
	child.Env = append(os.Environ(), childEnv+"=1")
	before := takeUsage()
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	require.Eventually(t, func() bool {
		busy := takeUsage().since(before)
		require.True(t, busy.Known)
		return busy.Others > 0.2/float64(runtime.NumCPU()) // a fifth of one processor, if this one is busy
	}, time.Minute, 100*time.Millisecond)
}

func TestOwnProcessorTimeIsNotThatOfOthers(t *testing.T) {
	before := takeUsage()
	u := takeUsage()
	for ; u.mine-before.mine < 50*time.Millisecond; u = takeUsage() {
		require.True(t, u.known)
	}
	u.all = before.all + (u.mine - before.mine) // an idle machine
	assert.Zero(t, u.since(before).Others)
	u.all += u.at.Sub(before.at) * time.Duration(runtime.NumCPU()) / 10
	assert.True(t, u.since(before).TooBig, "others had a tenth of all processors")
}
