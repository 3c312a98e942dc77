package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Kubernetes is an API server over etcd, which serves Lease objects.
type Kubernetes struct {
	*Process
	tb         testing.TB
	addr       string
	kubeconfig string
	authority  string
	args       []string
}

// StartKubernetes runs etcd and the API server of .ci/servers over it until the test ends, and
// returns when Lease objects are served. It asks for no password. Without a program, the test is
// treated as by [Missing].
func StartKubernetes(tb testing.TB) *Kubernetes {
	tb.Helper()
	program := Built(tb, "k8s-apiserver-0.37")
	etcd := StartEtcd(tb, "", 1)[0]
	port := strconv.Itoa(Port(tb))
	authority, certificate, key := Certificate(tb, "localhost")
	dir := tb.TempDir()
	k := &Kubernetes{
		tb: tb, addr: "127.0.0.1:" + port, authority: authority, kubeconfig: filepath.Join(dir, "config"),
	}
	if err := os.WriteFile(k.kubeconfig, k.Kubeconfig(k.addr), 0o600); err != nil {
		tb.Fatal(err)
	}
	k.args = []string{
		program, "-etcd", "http://" + etcd.Addr(), "-port", port, "-cert", certificate, "-key", key,
		"-kubeconfig", k.kubeconfig,
	}
	k.Restart()
	return k
}

// Restart starts the API server again, which was killed, and returns when Lease objects are served.
func (k *Kubernetes) Restart() {
	k.tb.Helper()
	cmd := exec.Command(k.args[0], k.args[1:]...)
	k.Process = Start(k.tb, cmd)
	if line := k.Line(); line != "ready" {
		k.tb.Fatalf("the API server says %q instead of ready", line)
	}
}

// Addr returns the address of the API server.
func (k *Kubernetes) Addr() string { return k.addr }

// Path returns the path of a kubeconfig file that leads to the API server.
func (k *Kubernetes) Path() string { return k.kubeconfig }

// Kubeconfig returns a kubeconfig file that leads to the API server by another address, such as
// the address of a proxy.
func (k *Kubernetes) Kubeconfig(addr string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, namespace: shop, user: test}}]
users: [{name: test, user: {token: none}}]
clusters: [{name: test, cluster: {server: "https://%s", tls-server-name: localhost, certificate-authority: %q}}]
`, addr, k.authority)
}
