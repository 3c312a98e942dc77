package testbed

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// zookeeperJars is where Debian has ZooKeeper and the libraries that it needs.
const zookeeperJars = "/usr/share/java"

// ZooKeeper is a server of the test's own. Its ticks take 200 ms, so that a session may have a
// timeout of 400 ms and more, and it removes empty containers within moments.
type ZooKeeper struct {
	*Process
	tb     testing.TB
	addr   string
	secure string
	main   string
	args   []string

	certificates string
}

// StartZooKeeper runs a ZooKeeper server until the test ends, and returns when it answers. Its
// configuration has lines as well. Without the program, the test is treated as by [Missing].
func StartZooKeeper(tb testing.TB, lines ...string) *ZooKeeper {
	tb.Helper()
	z := newZooKeeper(tb, "ZooKeeperServerMain", strings.Join(lines, "\n"))
	z.run()
	z.Ready()
	return z
}

// ZooKeeperAt returns a server that is there already, which nobody may stop.
func ZooKeeperAt(tb testing.TB, addr string) *ZooKeeper { return &ZooKeeper{tb: tb, addr: addr} }

// StartSecureZooKeeper runs a ZooKeeper server as [StartZooKeeper] does, with TLS at
// [ZooKeeper.Secure]. The server's certificate is for the name localhost. Clients need a
// certificate too: client has one, with the subject CN=client, and so have the files ca.pem,
// client.pem and client-key.pem of [ZooKeeper.Certificates].
func StartSecureZooKeeper(tb testing.TB) (z *ZooKeeper, client *tls.Config) {
	tb.Helper()
	dir := tb.TempDir()
	ca := newAuthority(tb)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.certificate)
	own := ca.issue(tb, "client")
	client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own.pair(tb)}}
	server := ca.issue(tb, "localhost")
	for name, content := range map[string][]byte{
		"server.pem":     slices.Concat(server.key, server.certificate),
		"ca.pem":         ca.certificate,
		"client.pem":     own.certificate,
		"client-key.pem": own.key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	port := Port(tb)
	z = newZooKeeper(tb, "ZooKeeperServerMain", fmt.Sprintf(
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"+
			"secureClientPort=%d\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth=need\n"+
			"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"+
			"ssl.keyStore.location=%[2]s/server.pem\nssl.keyStore.type=PEM\n"+
			"ssl.trustStore.location=%[2]s/ca.pem\nssl.trustStore.type=PEM\n",
		port, dir))
	z.secure, z.certificates = fmt.Sprintf("localhost:%d", port), dir
	z.run()
	z.Ready()
	return z, client
}

// StartZooKeepers runs an ensemble of n servers until the test ends, and returns when all of
// them answer.
func StartZooKeepers(tb testing.TB, n int) []*ZooKeeper {
	tb.Helper()
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, Port(tb), Port(tb))
	}
	all := make([]*ZooKeeper, n)
	for i := range all {
		all[i] = newZooKeeper(tb, "quorum.QuorumPeerMain", list.String())
		id := filepath.Join(filepath.Dir(all[i].args[0]), "data", "myid")
		if err := os.WriteFile(id, fmt.Append(nil, i+1), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	for _, z := range all {
		z.run()
	}
	for _, z := range all {
		z.Ready()
	}
	return all
}

func newZooKeeper(tb testing.TB, main, more string) *ZooKeeper {
	tb.Helper()
	Lookup(tb, "java")
	if _, err := os.Stat(zookeeperJars + "/zookeeper.jar"); err != nil {
		Missing(tb, "zookeeper")
	}
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		tb.Fatal(err)
	}
	port := Port(tb)
	config := fmt.Sprintf("tickTime=200\ninitLimit=50\nsyncLimit=25\n"+
		"minSessionTimeout=400\nmaxSessionTimeout=600000\ndataDir=%s/data\n"+
		"clientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"+
		"4lw.commands.whitelist=*\nmaxClientCnxns=0\n%s",
		dir, port, more)
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		tb.Fatal(err)
	}
	return &ZooKeeper{tb: tb, addr: fmt.Sprintf("127.0.0.1:%d", port), main: main, args: []string{file}}
}

func (z *ZooKeeper) run() {
	z.tb.Helper()
	var jars []string
	for _, jar := range []string{
		"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "snappy-java", "metrics-core", "commons-cli",
		"netty-all", "netty-common", "netty-buffer", "netty-codec", "netty-handler", "netty-resolver",
		"netty-transport",
	} {
		jars = append(jars, zookeeperJars+"/"+jar+".jar")
	}
	cmd := exec.Command("java", append([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no",
		// In an election, a server without an answer asks again within a second, not a minute.
		"-Dzookeeper.fastleader.maxNotificationInterval=1000",
		"-Dznode.container.checkIntervalMs=1000",
		"-cp", strings.Join(jars, ":"), "org.apache.zookeeper.server." + z.main,
	}, z.args...)...)
	z.Process = Start(z.tb, cmd)
}

// Addr returns the address where the server listens.
func (z *ZooKeeper) Addr() string { return z.addr }

// Secure returns the address where the server talks TLS.
func (z *ZooKeeper) Secure() string { return z.secure }

// Certificates returns the directory with the certificates of a server that talks TLS.
func (z *ZooKeeper) Certificates() string { return z.certificates }

// Restart starts the killed server again, with the data on its disk, and returns when the server
// answers.
func (z *ZooKeeper) Restart() {
	z.tb.Helper()
	z.run()
	z.Ready()
}

// Ready returns when the server serves.
func (z *ZooKeeper) Ready() {
	z.tb.Helper()
	for end := time.Now().Add(Hang); ; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(z.Ask("srvr"), "Mode: ") {
			return
		}
		if time.Now().After(end) {
			z.tb.Fatalf("ZooKeeper at %s does not serve", z.addr)
		}
	}
}

// Leads reports whether the server is the leader of its ensemble.
func (z *ZooKeeper) Leads() bool { return strings.Contains(z.Ask("srvr"), "Mode: leader") }

// Ask sends one of the server's four-letter commands, and returns what it says, or nothing.
func (z *ZooKeeper) Ask(command string) string {
	conn, err := net.DialTimeout("tcp", z.addr, askAgain)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(askAgain))
	io.WriteString(conn, command)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}
