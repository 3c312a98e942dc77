package main

import (
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// stores has the flag for each store, but for mem:. Those of real servers start one, which ends
// with the test; without the program the test is skipped, but for continuous integration, where
// it fails.
var stores = []struct {
	name string
	spec func(tb testing.TB) string
}{
	{"files", func(testing.TB) string { return "file:" }},
	{"files in a given directory", func(tb testing.TB) string {
		return "file:" + filepath.Join(tb.TempDir(), "locks") + "?kind=fenced"
	}},
	{"SQLite", func(testing.TB) string { return "sqlite:" }},
	{"SQLite in a given file", func(tb testing.TB) string {
		return "sqlite:" + filepath.Join(tb.TempDir(), "a %25 %3f %23b.db")
	}},
	{"embedded Redis", func(testing.TB) string { return "redis:" }},
	{"Redis", func(tb testing.TB) string { return "redis://" + startRedisServer(tb) + "?kind=fenced" }},
	{"Redis with a password", func(tb testing.TB) string {
		return "redis://:" + secret + "@" + startRedisServer(tb, "--requirepass", secret) + "/1?kind=fenced"
	}},
	{"PostgreSQL", func(tb testing.TB) string {
		return "postgres://postgres:" + secret + "@" + startPostgres(tb) + "/postgres?sslmode=disable"
	}},
	{"MariaDB", func(tb testing.TB) string { return "mysql://root@" + startMariaDB(tb) + "/test" }},
	{"ZooKeeper", func(tb testing.TB) string { return "zk://" + testbed.StartZooKeeper(tb).Addr() + "/app" }},
	{"DynamoDB", func(tb testing.TB) string {
		_, addr := testbed.StartKumo(tb)
		return "dynamodb://key:" + secret + "@" + addr + "/shop?create=true"
	}},
	{"etcd", func(tb testing.TB) string { return "etcd://" + startEtcd(tb) }},
	{"Consul", func(tb testing.TB) string {
		return "consul://" + testbed.StartConsul(tb, testbed.ConsulCluster{Version: "1.14"})[0].Addr()
	}},
	{"NATS", func(tb testing.TB) string {
		return "nats://" + testbed.StartNATS(tb, testbed.NATSCluster{Version: "2.15"})[0].Addr() + "/locks?replicas=1"
	}},
	{"S3", func(tb testing.TB) string {
		return "s3://" + testbed.S3Access + ":" + url.QueryEscape(testbed.S3Secret) + "@tickets?endpoint=http://" +
			testbed.StartVersitygw(tb, "tickets").Addr()
	}},
	{"Google Cloud Storage", func(tb testing.TB) string {
		return "gs://tickets?endpoint=" + testbed.StartFakeGCS(tb, "tickets", "").URL()
	}},
	{"Kubernetes", func(tb testing.TB) string {
		return "kubernetes:shop?kubeconfig=" + testbed.StartKubernetes(tb).Path()
	}},
}

// secret is a password, which nobody may be told.
const secret = "geheim"

func startRedisServer(tb testing.TB, args ...string) string {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port, dir := testbed.Port(tb), tb.TempDir()
	testbed.Start(tb, exec.Command(path, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--logfile", filepath.Join(dir, "log"),
	}, args...)...))
	return listening(tb, port)
}

// listening returns the address of a port when a process listens there.
func listening(tb testing.TB, port int) string {
	tb.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	require.Eventually(tb, func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	return addr
}

// serving returns the address of a port when the store there can be opened.
func serving(tb testing.TB, port int, spec func(addr string) string) string {
	tb.Helper()
	addr := listening(tb, port)
	require.Eventually(tb, func() bool { return opens(tb, spec(addr)) == nil }, 30*time.Second, 20*time.Millisecond)
	return addr
}

// opens returns why a store cannot be opened.
func opens(tb testing.TB, spec string) error {
	s, err := openStore(tb.Context(), spec)
	if err == nil {
		s.Close(tb.Context())
	}
	return err
}

func startPostgres(tb testing.TB) string {
	tb.Helper()
	return testbed.StartPostgres(tb, func(addr string) error {
		return opens(tb, "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	}).Addr()
}

func startMariaDB(tb testing.TB) string {
	tb.Helper()
	return testbed.StartMariaDB(tb, func(addr string) error {
		return opens(tb, "mysql://root@"+addr+"/test")
	}).Addr()
}

func startEtcd(tb testing.TB) string {
	tb.Helper()
	path := testbed.Lookup(tb, "etcd")
	port := testbed.Port(tb)
	client, peer := fmt.Sprint("http://127.0.0.1:", port), fmt.Sprint("http://127.0.0.1:", testbed.Port(tb))
	testbed.Start(tb, exec.Command(path, "--name", "n", "--data-dir", tb.TempDir(), "--unsafe-no-fsync",
		"--logger", "zap", "--log-level", "fatal",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n="+peer))
	return serving(tb, port, func(addr string) string { return "etcd://" + addr })
}
