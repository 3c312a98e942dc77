package testbed

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Etcd is a member of an etcd cluster of the test's own.
type Etcd struct {
	*Process
	tb   testing.TB
	addr string
	args []string
}

// StartEtcd runs an etcd cluster of n members until the test ends, and returns when all of them
// answer. Its leases may be as short as a second. The version is "3.5" or "3.6", which
// .ci/servers installs, or empty for the etcd in the PATH. Without the program, the test is
// treated as by [Missing].
func StartEtcd(tb testing.TB, version string, n int) []*Etcd {
	tb.Helper()
	path := etcdProgram(tb, version)
	members := make([]*Etcd, n)
	var cluster []string
	for i := range members {
		peer := fmt.Sprintf("http://127.0.0.1:%d", Port(tb))
		addr := fmt.Sprintf("127.0.0.1:%d", Port(tb))
		name := fmt.Sprint("n", i)
		cluster = append(cluster, name+"="+peer)
		members[i] = &Etcd{tb: tb, addr: addr, args: []string{
			path, "--name", name, "--data-dir", tb.TempDir(), "--unsafe-no-fsync",
			"--logger", "zap", "--log-level", "fatal",
			"--listen-client-urls", "http://" + addr, "--advertise-client-urls", "http://" + addr,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--heartbeat-interval", "20", "--election-timeout", "200",
			"--bcrypt-cost", "4", // logins in no time, also on a busy machine
		}}
	}
	for _, m := range members {
		m.args = append(m.args, "--initial-cluster", strings.Join(cluster, ","))
		m.run()
	}
	for _, m := range members {
		m.Ready()
	}
	return members
}

// EtcdAt returns a member that is there already, which nobody may stop.
func EtcdAt(tb testing.TB, addr string) *Etcd { return &Etcd{tb: tb, addr: addr} }

func (m *Etcd) run() { m.Process = Start(m.tb, exec.Command(m.args[0], m.args[1:]...)) }

// Addr returns the address for clients.
func (m *Etcd) Addr() string { return m.addr }

// Restart starts the killed member again, with the data on its disk, and returns when the member
// answers.
func (m *Etcd) Restart() {
	m.tb.Helper()
	m.run()
	m.Ready()
}

// Ready returns when the member answers for its cluster.
func (m *Etcd) Ready() {
	m.tb.Helper()
	client := &http.Client{Timeout: askAgain, Transport: &http.Transport{DisableKeepAlives: true}}
	for end := time.Now().Add(Hang); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := client.Get("http://" + m.addr + "/health"); err == nil {
			health, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if strings.Contains(string(health), `"health":"true"`) {
				return
			}
		}
		if time.Now().After(end) {
			m.tb.Fatalf("etcd at %s does not answer", m.addr)
		}
	}
}

// StartEtcdProxy runs etcd's own proxy (etcd grpc-proxy) in front of the members at addrs until
// the test ends, and returns its address for clients. The version is as for [StartEtcd].
func StartEtcdProxy(tb testing.TB, version string, addrs ...string) string {
	tb.Helper()
	path := etcdProgram(tb, version)
	addr := fmt.Sprintf("127.0.0.1:%d", Port(tb))
	Start(tb, exec.Command(path, "grpc-proxy", "start", "--endpoints", strings.Join(addrs, ","),
		"--listen-addr", addr, "--advertise-client-url", addr, "--data-dir", tb.TempDir()))
	(&Etcd{tb: tb, addr: addr}).Ready()
	return addr
}

// etcdProgram returns the path of the program of a version, see [StartEtcd].
func etcdProgram(tb testing.TB, version string) string {
	tb.Helper()
	if version == "" {
		return Lookup(tb, "etcd")
	}
	return Built(tb, "etcd-"+version)
}
