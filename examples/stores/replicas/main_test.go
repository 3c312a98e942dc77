package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testbed.Children())
}

// replica is a running program with its output.
type replica struct {
	cmd   *exec.Cmd
	lines chan string
}

func TestOneReplicaLeadsAfterTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replicas")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	kubeconfig := testbed.StartKubernetes(t).Path()
	start := func(pod string) replica {
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE=shop", "POD="+pod)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		r := replica{cmd, make(chan string, 1000)}
		go func() {
			defer close(r.lines)
			for s := bufio.NewScanner(stdout); s.Scan(); {
				r.lines <- s.Text()
			}
		}()
		return r
	}
	first := start("first")
	require.Equal(t, "first leads with token 1", <-first.lines)
	second := start("second")
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	for line := range first.lines { // until it ends
		require.Equal(t, "first leads with token 1", line)
	}
	require.NoError(t, first.cmd.Wait(), "it ends in order")
	require.Equal(t, "second leads with token 2", <-second.lines)
	require.NoError(t, second.cmd.Process.Signal(os.Interrupt))
	for range second.lines {
	}
	require.NoError(t, second.cmd.Wait())
}

func TestTheDeploymentNamesTheLock(t *testing.T) {
	deployment, err := os.ReadFile("deployment.yaml")
	require.NoError(t, err)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Contains(t, string(program), `client.Mutex("replicas")`)
	require.Equal(t, 1, strings.Count(string(deployment), "resourceNames: [replicas]"))
	require.Contains(t, string(deployment), "replicas: 2")
}
