package command

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program of the README has one client, and its help has the URLs of one store.
func TestASmallWithlockHasTheStoreThatItImports(t *testing.T) {
	const program = "github.com/jucgo/locks/cmd/withlock/internal/onredis"
	out, err := exec.Command("go", "list", "-deps", program).Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/redis/go-redis/v9")
	for _, client := range []string{
		"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "modernc.org/sqlite",
		"go.etcd.io/etcd/client/v3", "github.com/go-zookeeper/zk", "github.com/hashicorp/consul/api",
		"github.com/nats-io/nats.go", "github.com/aws/aws-sdk-go-v2/aws", "k8s.io/client-go/rest",
		"golang.org/x/oauth2",
	} {
		require.NotContains(t, deps, client)
	}

	small := filepath.Join(t.TempDir(), "withlock")
	out, err = exec.Command("go", "build", "-o", small, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(small, "-h").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "redis+cluster://")
	require.NotContains(t, string(out), "postgres://")

	for url, want := range map[string]struct {
		code int
		says string
	}{
		"s3://bucket":         {exitUsage, "distributed/s3lock/s3open"},
		"redis://127.0.0.1:1": {exitUnreachable, "cannot be reached"},
	} {
		out, err = exec.Command(small, "who", "-store", url, "nightly").CombinedOutput()
		var ended *exec.ExitError
		require.True(t, errors.As(err, &ended), "%v", err)
		require.Equal(t, want.code, ended.ExitCode(), "%s", out)
		require.Contains(t, string(out), want.says)
		require.Equal(t, 1, strings.Count(string(out), "\n"), "a client prints nothing of its own: %s", out)
	}
}
