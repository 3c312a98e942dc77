package all_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open"
)

func TestAMissingFolderAboveIsNotMade(t *testing.T) {
	for _, url := range []string{"file:", "sqlite:"} {
		dir := t.TempDir()
		_, err := open.URL(t.Context(), url+filepath.Join(dir, "mistyped", "locks"))
		require.ErrorIs(t, err, open.ErrUnreachable)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "mistyped: no such file or directory")
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
	}
}

func TestAPlaceBelowAFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, url := range []string{"file:", "sqlite:"} {
		_, err := open.URL(t.Context(), url+filepath.Join(file, "locks"))
		require.ErrorIs(t, err, open.ErrUnreachable)
		require.ErrorContains(t, err, "not a directory")
	}
}

func TestAShellsPathIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, url := range []string{"file:~/locks", "file:~", "sqlite:~/locks.db", "sqlite::memory:"} {
		refused(t, url)
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestAUserNamedLikeTheSchemeMasksNothing(t *testing.T) {
	_, err := open.URL(t.Context(), "postgres://postgres:not+it@127.0.0.1:1/postgres?sslmode=disable")
	require.ErrorIs(t, err, open.ErrUnreachable)
	require.True(t, strings.HasPrefix(err.Error(), "open: postgres://127.0.0.1:1/postgres: "), err)
}

func TestAnUnreachableStoreMatchesTheErrorOfLease(t *testing.T) {
	_, err := open.URL(t.Context(), "redis://127.0.0.1:1")
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.Equal(t, 1, strings.Count(err.Error(), lease.ErrUnreachable.Error()), err)
}

// A program that wants one store must not carry the clients of all.
func TestAStoreBringsOnlyItsOwnClient(t *testing.T) {
	clients := map[string]string{
		"redislock/redisopen":     "github.com/redis/go-redis/v9",
		"sqllock/postgresopen":    "github.com/jackc/pgx/v5",
		"sqllock/mysqlopen":       "github.com/go-sql-driver/mysql",
		"sqllock/sqliteopen":      "modernc.org/sqlite",
		"etcdlock/etcdopen":       "go.etcd.io/etcd/client/v3",
		"zklock/zkopen":           "github.com/go-zookeeper/zk",
		"consullock/consulopen":   "github.com/hashicorp/consul/api",
		"natslock/natsopen":       "github.com/nats-io/nats.go",
		"s3lock/s3open":           "github.com/aws/aws-sdk-go-v2/service/s3",
		"dynamolock/dynamodbopen": "github.com/aws/aws-sdk-go-v2/service/dynamodb",
		"gcslock/gsopen":          "golang.org/x/oauth2/google",
		"k8slock/kubernetesopen":  "k8s.io/client-go/rest",
		"filelock/fileopen":       "github.com/jucgo/locks/distributed/filelock",
	}
	for store, client := range clients {
		out, err := exec.Command("go", "list", "-deps", "github.com/jucgo/locks/distributed/"+store).Output()
		require.NoError(t, err)
		deps := strings.Fields(string(out))
		require.Contains(t, deps, client)
		for other, foreign := range clients {
			if other != store {
				require.NotContains(t, deps, foreign, store)
			}
		}
	}
}
