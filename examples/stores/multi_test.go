package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/testbed"
)

// both is a process that acquires the lock called orders of two stores together, so often.
func both(args []string) error {
	ctx := context.Background()
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var orders []locks.TryLocker
	for _, url := range args[:2] {
		s, err := openStore(ctx, url)
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		orders = append(orders, s.Locker("orders"))
	}
	return testbed.LockTogether(ctx, locks.Multi(orders...), rounds)
}

// pairs have two stores of one kind each, as one process and as another process knows them.
var pairs = []struct {
	name string
	urls func(t *testing.T) (one, other [2]string)
}{
	{"files", func(t *testing.T) (one, other [2]string) {
		dir := t.TempDir()
		for _, name := range []string{"a", "b"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		}
		require.NoError(t, os.Symlink("a", filepath.Join(dir, "z")))
		url := func(name string) string { return "file:" + filepath.Join(dir, name) }
		return [2]string{url("a"), url("b")}, [2]string{url("z"), url("b")}
	}},
	{"SQLite", func(t *testing.T) (one, other [2]string) {
		dir := t.TempDir()
		url := func(name string) string { return "sqlite:" + filepath.Join(dir, name) + ".db" }
		return [2]string{url("a"), url("b")}, [2]string{url("b"), url("a")}
	}},
	{"Redis", func(t *testing.T) (one, other [2]string) {
		a, b := "redis://"+startRedisServer(t)+"/0", "redis://"+startRedisServer(t)+"/0"
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"databases of one Redis", func(t *testing.T) (one, other [2]string) {
		a := "redis://" + startRedisServer(t)
		return [2]string{a + "/0", a + "/1"}, [2]string{byName(a) + "/0", a + "/1"}
	}},
	{"PostgreSQL", func(t *testing.T) (one, other [2]string) {
		a := "postgres://postgres@" + startPostgres(t) + "/postgres?sslmode=disable&table="
		return [2]string{a + "one", a + "two"}, [2]string{a + "two", byName(a) + "one"}
	}},
	{"MariaDB", func(t *testing.T) (one, other [2]string) {
		a := "mysql://root@" + startMariaDB(t) + "/test?table="
		return [2]string{a + "one", a + "two"}, [2]string{a + "two", byName(a) + "one"}
	}},
	{"ZooKeeper", func(t *testing.T) (one, other [2]string) {
		a, b := "zk://"+testbed.StartZooKeeper(t).Addr(), "zk://"+testbed.StartZooKeeper(t).Addr()
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"etcd", func(t *testing.T) (one, other [2]string) {
		a, b := "etcd://"+startEtcd(t), "etcd://"+startEtcd(t)
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"prefixes of one etcd", func(t *testing.T) (one, other [2]string) {
		a := "etcd://" + startEtcd(t)
		return [2]string{a + "?prefix=x", a + "?prefix=y"}, [2]string{a + "?prefix=y", byName(a) + "?prefix=x"}
	}},
	{"Consul", func(t *testing.T) (one, other [2]string) {
		start := func() string {
			return "consul://" + testbed.StartConsul(t, testbed.ConsulCluster{Version: "1.14"})[0].Addr()
		}
		a, b := start(), start()
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"buckets of one NATS", func(t *testing.T) (one, other [2]string) {
		a := "nats://" + testbed.StartNATS(t, testbed.NATSCluster{Version: "2.15"})[0].Addr()
		const x, y = "/x?replicas=1", "/y?replicas=1"
		return [2]string{a + x, a + y}, [2]string{a + y, byName(a) + x}
	}},
	{"tables of one DynamoDB", func(t *testing.T) (one, other [2]string) {
		_, addr := testbed.StartKumo(t)
		a := "dynamodb://key:" + secret + "@" + addr
		const x, y = "/x?create=true", "/y?create=true"
		return [2]string{a + x, a + y}, [2]string{a + y, byName(a) + x}
	}},
	{"S3", func(t *testing.T) (one, other [2]string) {
		start := func() string {
			return "s3://" + testbed.S3Access + ":" + url.QueryEscape(testbed.S3Secret) + "@tickets?endpoint=http://" +
				testbed.StartVersitygw(t, "tickets").Addr()
		}
		a, b := start(), start()
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"Google Cloud Storage", func(t *testing.T) (one, other [2]string) {
		start := func() string { return "gs://tickets?endpoint=" + testbed.StartFakeGCS(t, "tickets", "").URL() }
		a, b := start(), start()
		return [2]string{a, b}, [2]string{byName(a), b}
	}},
	{"namespaces of one Kubernetes", func(t *testing.T) (one, other [2]string) {
		k := testbed.StartKubernetes(t)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, k.Kubeconfig(byName(k.Addr())), 0o600))
		const x, y = "kubernetes:x?kubeconfig=", "kubernetes:y?kubeconfig="
		return [2]string{x + k.Path(), y + k.Path()}, [2]string{y + k.Path(), x + path}
	}},
	{"Redis and etcd", func(t *testing.T) (one, other [2]string) {
		a, b := "redis://"+startRedisServer(t)+"/0", "etcd://"+startEtcd(t)
		return [2]string{a, b}, [2]string{b, byName(a)}
	}},
}

// byName returns a URL with the name of this machine in place of its address.
func byName(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

func TestTwoProcessesAcquireOneNameOfTwoStores(t *testing.T) {
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			one, other := p.urls(t)
			var processes []*testbed.Process
			for _, urls := range [][2]string{one, other, {one[1], one[0]}} {
				processes = append(processes, testbed.Child(t, "both", urls[0], urls[1], "10"))
			}
			testbed.AcquireTogether(processes...)
		})
	}
}
