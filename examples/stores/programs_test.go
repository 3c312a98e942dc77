package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// terminated runs the program until it holds its lock, sends it SIGTERM, and returns its exit code,
// and whether it wrote its last part all the same.
func terminated(t *testing.T, path string, environment []string) (code int, wroteAll bool) {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = environment
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "write part "); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), strings.Contains(string(rest), "write part 3 ")
}

// The programs that the README of each store shows.
func TestTheProgramOfEachStoreMakesItsReport(t *testing.T) {
	for _, program := range []struct {
		folder   string
		variable func(tb testing.TB) string
	}{
		{"file", func(tb testing.TB) string { return "LOCK_DIR=" + tb.TempDir() }},
		{"sql", func(tb testing.TB) string { return "SQLITE_FILE=" + filepath.Join(tb.TempDir(), "report.db") }},
		{"redis", func(tb testing.TB) string { return "REDIS_ADDR=" + startRedisServer(tb) }},
		{"etcd", func(tb testing.TB) string { return "ETCD=" + startEtcd(tb) }},
		{"consul", func(tb testing.TB) string {
			return "CONSUL_HTTP_ADDR=" + testbed.StartConsul(tb, testbed.ConsulCluster{Version: "1.14"})[0].Addr()
		}},
		{"nats", func(tb testing.TB) string {
			return "NATS=" + testbed.StartNATS(tb, testbed.NATSCluster{Version: "2.15"})[0].Addr()
		}},
		{"dynamodb", func(tb testing.TB) string {
			_, addr := testbed.StartKumo(tb)
			return "AWS_ENDPOINT_URL_DYNAMODB=http://" + addr
		}},
		{"kubernetes", func(tb testing.TB) string { return "KUBECONFIG=" + testbed.StartKubernetes(tb).Path() }},
		{"zookeeper", func(tb testing.TB) string { return "ZOOKEEPER=" + testbed.StartZooKeeper(tb).Addr() }},
		{"s3", func(tb testing.TB) string {
			return "AWS_ENDPOINT_URL=http://" + testbed.StartVersitygw(tb, "reports").Addr()
		}},
		{"gcs", func(tb testing.TB) string {
			return "STORAGE_EMULATOR_HOST=" + testbed.StartFakeGCS(tb, "reports", "").URL()
		}},
	} {
		t.Run(program.folder, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report")
			if runtime.GOOS == "windows" {
				path += ".exe"
			}
			out, err := exec.Command("go", "build", "-o", path, "./"+program.folder).CombinedOutput()
			require.NoError(t, err, string(out))
			environment := append(os.Environ(), program.variable(t), "AWS_REGION=us-east-1",
				"AWS_ACCESS_KEY_ID="+testbed.S3Access, "AWS_SECRET_ACCESS_KEY="+testbed.S3Secret)
			for range 2 { // the second time it finds what the first has left
				cmd := exec.Command(path)
				cmd.Env = environment
				out, err = cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				require.Equal(t, 3, strings.Count(string(out), "write part "), string(out))
				require.NotContains(t, string(out), "token 0")
			}
			if runtime.GOOS != "windows" { // where a process can only be killed
				code, wroteAll := terminated(t, path, environment)
				for try := 1; wroteAll && try < 20; try++ { // the signal came too late on a busy machine
					code, wroteAll = terminated(t, path, environment)
				}
				require.False(t, wroteAll, "a signal ends its work")
				require.Equal(t, 1, code, "it releases the lock, and ends by itself")
			}
		})
	}
}
