package all_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"database/sql"

	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

// password is the password of all servers.
const password = "ge?heim/@"

var userinfo = url.UserPassword("locks-user", password).String()

// place is a store that a test has started.
type place struct {
	name   string
	kinds  string
	tokens string                      // kinds with fencing tokens
	forced string                      // kinds that can be freed by force
	listed string                      // kinds whose names are listed
	start  func(tb testing.TB) string  // returns a URL with at least one parameter
	wrong  func(url string) (u string) // with another user
}

const anyRedis = "plain fenced fair simple"

var places = []place{
	{name: "mem", kinds: "plain fair", start: func(testing.TB) string { return "mem:?" }},
	{name: "file", kinds: "plain fenced", tokens: "fenced", listed: "plain fenced", start: func(tb testing.TB) string {
		return "file:" + filepath.Join(tb.TempDir(), "a %25 %3f") + "?perm=600"
	}},
	{name: "sqlite", kinds: "table queue", tokens: "table queue", forced: "table queue", listed: "table queue",
		start: func(tb testing.TB) string {
			return "sqlite:" + filepath.Join(tb.TempDir(), "a %25 %3f.db") + "?table=mine&label=me"
		}},
	{name: "postgres", kinds: "table queue advisory", tokens: "table queue", forced: "table queue",
		listed: "table queue", start: startPostgres, wrong: otherUser},
	{name: "mysql", kinds: "table queue advisory", tokens: "table queue", forced: "table queue",
		listed: "table queue", start: startMySQL, wrong: otherUser},
	{name: "redis", kinds: anyRedis, tokens: "fenced", forced: anyRedis, listed: anyRedis,
		start: startRedis, wrong: otherUser},
	{name: "redis over a Unix socket", kinds: "plain", forced: "plain", listed: "plain", start: startRedisSocket,
		wrong: otherUser},
	{name: "rediss", kinds: "plain", forced: anyRedis, listed: "plain", start: startSecureRedis, wrong: otherUser},
	{name: "redis+sentinel", kinds: "plain", forced: "plain", listed: "plain", start: startSentinel,
		wrong: otherUser},
	{name: "redis+cluster", kinds: "fenced", tokens: "fenced", forced: "fenced", listed: "fenced",
		start: startCluster, wrong: otherUser},
	{name: "zk", kinds: "mutex semaphore", tokens: "mutex semaphore", forced: "mutex semaphore",
		listed: "mutex semaphore", start: startZooKeeper},
	{name: "etcd", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startEtcd,
		wrong: otherUser},
	{name: "consul", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startConsul,
		wrong: otherToken},
	{name: "consul with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex",
		start: startSecureConsul},
	{name: "nats", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startNATS,
		wrong: otherUser},
	{name: "nats with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startSecureNATS},
	{name: "s3", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startS3, wrong: otherUser},
	{name: "s3 with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startSecureS3,
		wrong: otherUser},
	{name: "gs", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startGCS},
	{name: "gs with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startSecureGCS},
	{name: "dynamodb", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startKumo},
	{name: "mysql with TLS", kinds: "table", tokens: "table", forced: "table", listed: "table",
		start: startSecureMySQL, wrong: otherUser},
	{name: "zk with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex",
		start: startSecureZooKeeper},
	{name: "etcd with TLS", kinds: "mutex", tokens: "mutex", forced: "mutex", listed: "mutex", start: startSecureEtcd},
}

// otherUser returns the URL with another user. PostgreSQL accepts any password here.
func otherUser(text string) string {
	before, _, _ := strings.Cut(text, ":")
	_, after, _ := strings.Cut(text, "@")
	return before + "://other-user:not+the+password@" + after
}

// otherToken returns the URL with another password.
func otherToken(text string) string {
	_, after, _ := strings.Cut(text, "@")
	return "consul://:not+the+password@" + after
}

// opened opens a store that is closed with the test.
func opened(tb testing.TB, url string, opts ...open.Option) *open.Client {
	tb.Helper()
	s, err := open.URL(tb.Context(), url, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close(context.Background())) })
	return s
}

// serving returns url when the store can be opened.
func serving(tb testing.TB, url string) string {
	tb.Helper()
	require.Eventually(tb, func() bool {
		s, err := open.URL(context.Background(), url)
		if err == nil {
			s.Close(context.Background())
		}
		return err == nil
	}, testbed.Hang, 20*time.Millisecond, "%s answers", url)
	return url
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// runRedis runs a server with the password, for the default user too.
func runRedis(tb testing.TB, args ...string) (port int) {
	tb.Helper()
	port = testbed.Port(tb)
	dir := tb.TempDir()
	testbed.Start(tb, exec.Command(testbed.Lookup(tb, "redis-server"), append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--logfile", filepath.Join(dir, "log"), "--requirepass", password,
		"--user", "locks-user", "on", ">" + password, "~*", "&*", "+@all",
	}, args...)...))
	return port
}

func startRedis(tb testing.TB) string {
	return serving(tb, "redis://"+userinfo+"@"+addr(runRedis(tb))+"/1?prefix=app:[*]:")
}

func startRedisSocket(tb testing.TB) string {
	dir, err := os.MkdirTemp("", "open") // the path of a socket has at most some 100 bytes
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	runRedis(tb, "--unixsocket", socket)
	return serving(tb, "redis://"+userinfo+"@/1?socket="+socket)
}

func startSecureRedis(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	port := testbed.Port(tb)
	runRedis(tb, "--tls-port", strconv.Itoa(port), "--tls-ca-cert-file", ca, "--tls-cert-file", cert,
		"--tls-key-file", key)
	return serving(tb, fmt.Sprintf("rediss://%s@localhost:%d?%s", userinfo, port, certificates(ca, cert, key)))
}

// certificates returns the parameters of a client with a certificate.
func certificates(ca, cert, key string) string {
	return url.Values{"cacert": {ca}, "cert": {cert}, "key": {key}}.Encode()
}

func startSentinel(tb testing.TB) string {
	master := runRedis(tb)
	port, dir := testbed.Port(tb), tb.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	require.NoError(tb, os.WriteFile(conf, []byte(strings.Join([]string{
		"port " + strconv.Itoa(port), "bind 127.0.0.1", "dir " + dir, "logfile " + filepath.Join(dir, "log"),
		"requirepass " + password,
		fmt.Sprintf("sentinel monitor it 127.0.0.1 %d 1", master),
		"sentinel auth-pass it " + password, "",
	}, "\n")), 0o600))
	testbed.Start(tb, exec.Command(testbed.Lookup(tb, "redis-server"), conf, "--sentinel"))
	return serving(tb, "redis+sentinel://"+userinfo+"@"+addr(port)+","+addr(port)+"/1?master=it&sentinel_password="+
		url.QueryEscape(password))
}

func startKumo(tb testing.TB) string {
	_, addr := testbed.StartKumo(tb)
	return "dynamodb://" + userinfo + "@" + addr + "/shop?create=true&prefix=app/"
}

func startCluster(tb testing.TB) string {
	port := runRedis(tb, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(testbed.Port(tb)))
	direct := redis.NewClient(&redis.Options{Addr: addr(port), Password: password})
	defer direct.Close()
	ctx := context.Background()
	require.Eventually(tb, func() bool { return direct.ClusterAddSlotsRange(ctx, 0, 16383).Err() == nil },
		time.Minute, 20*time.Millisecond)
	require.Eventually(tb, func() bool {
		return strings.Contains(direct.ClusterInfo(ctx).Val(), "cluster_state:ok")
	}, time.Minute, 10*time.Millisecond)
	return serving(tb, "redis+cluster://"+userinfo+"@"+addr(port)+","+addr(port)+"?ttl=30s")
}

func startPostgres(tb testing.TB) string {
	var at string
	testbed.StartPostgres(tb, func(addr string) error {
		at = addr
		db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(`CREATE USER "locks-user" SUPERUSER PASSWORD '` + password + `'`)
		return err
	})
	return "postgres://" + userinfo + "@" + at + "/postgres?sslmode=disable"
}

func startMySQL(tb testing.TB) string {
	var at string
	testbed.StartMariaDB(tb, func(addr string) error {
		at = addr
		return createUser(addr, "", "")
	})
	return "mysql://" + userinfo + "@" + at + "/test?table=mine"
}

func startSecureMySQL(tb testing.TB) string {
	var at string
	ca, cert, key := testbed.Certificate(tb, "localhost")
	testbed.StartSecureMariaDB(tb, func(addr string) error {
		at = addr
		return createUser(addr, "skip-verify", " REQUIRE X509")
	}, ca, cert, key)
	_, port, err := net.SplitHostPort(at)
	require.NoError(tb, err)
	return "mysql://" + userinfo + "@localhost:" + port + "/test?tls=true&" + certificates(ca, cert, key)
}

// createUser makes the user of the URLs, for the mode of TLS of the driver.
func createUser(addr, mode, require string) error {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.Logger = "root", "tcp", addr, &mysql.NopLogger{}
	config.TLSConfig = mode
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err = db.Exec("CREATE USER `locks-user`@`127.0.0.1` IDENTIFIED BY '" + password + "'" + require); err == nil {
		_, err = db.Exec("GRANT ALL ON *.* TO `locks-user`@`127.0.0.1`")
	}
	return err
}

func startZooKeeper(tb testing.TB) string {
	return "zk://" + userinfo + "@" + testbed.StartZooKeeper(tb).Addr() + "/app?ttl=20s"
}

func startSecureZooKeeper(tb testing.TB) string {
	z, _ := testbed.StartSecureZooKeeper(tb)
	dir := z.Certificates()
	return serving(tb, "zk://"+userinfo+"@"+z.Secure()+"/app?tls=true&"+certificates(filepath.Join(dir, "ca.pem"),
		filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem")))
}

func startEtcd(tb testing.TB) string {
	at := runEtcd(tb, "http", "127.0.0.1")
	secure(tb, at)
	return serving(tb, "etcd://"+userinfo+"@"+at+"?prefix=/locks/")
}

func startSecureEtcd(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	at := runEtcd(tb, "https", "localhost", "--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", cert,
		"--key-file", key)
	return serving(tb, "etcd://"+at+"?prefix=/locks/&tls=true&"+certificates(ca, cert, key))
}

func startNATS(tb testing.TB) string {
	at := testbed.StartNATS(tb, testbed.NATSCluster{Version: "2.15", More: fmt.Sprintf(
		"authorization { user: locks-user, password: %q }", password)})[0].Addr()
	return serving(tb, "nats://"+userinfo+"@"+at+"/locks?replicas=1&inbox=_INBOX_app")
}

func startSecureNATS(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	at := testbed.StartNATS(tb, testbed.NATSCluster{Version: "2.15", More: fmt.Sprintf(
		"tls { ca_file: %q, cert_file: %q, key_file: %q, verify: true }", ca, cert, key)})[0].Addr()
	_, port, err := net.SplitHostPort(at)
	require.NoError(tb, err)
	return serving(tb, "nats://localhost:"+port+"/locks?replicas=1&tls=true&"+certificates(ca, cert, key))
}

func startS3(tb testing.TB) string {
	endpoint := "http://" + testbed.StartVersitygw(tb, "locks-bucket").Addr()
	return serving(tb, "s3://"+userinfo+"@locks-bucket/app?endpoint="+endpoint)
}

func startSecureS3(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	_, port, err := net.SplitHostPort(testbed.StartVersitygw(tb, "locks-bucket", "--cert", cert, "--key", key).Addr())
	require.NoError(tb, err)
	return serving(tb, "s3://"+userinfo+"@locks-bucket?probe=false&endpoint=https://localhost:"+port+
		"&"+url.Values{"cacert": {ca}}.Encode())
}

func startGCS(tb testing.TB) string {
	return "gs://locks-bucket/app?endpoint=" + testbed.StartFakeGCS(tb, "locks-bucket", "").URL()
}

// startSecureGCS puts a proxy with a certificate in front of the server.
func startSecureGCS(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(tb, err)
	to, err := url.Parse(testbed.StartFakeGCS(tb, "locks-bucket", "").URL())
	require.NoError(tb, err)
	proxy := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail on purpose
	proxy.StartTLS()
	tb.Cleanup(proxy.Close)
	_, port, err := net.SplitHostPort(proxy.Listener.Addr().String())
	require.NoError(tb, err)
	return "gs://locks-bucket?endpoint=https://localhost:" + port + "&" + url.Values{"cacert": {ca}}.Encode()
}

// runEtcd runs a server, and returns its address with the name of the host.
func runEtcd(tb testing.TB, scheme, host string, args ...string) string {
	port := testbed.Port(tb)
	at := net.JoinHostPort(host, strconv.Itoa(port))
	peer := "http://" + addr(testbed.Port(tb))
	testbed.Start(tb, exec.Command(testbed.Lookup(tb, "etcd"), append([]string{
		"--name", "n", "--data-dir", tb.TempDir(), "--unsafe-no-fsync", "--logger", "zap", "--log-level", "fatal",
		"--listen-client-urls", scheme + "://" + addr(port), "--advertise-client-urls", scheme + "://" + at,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n=" + peer,
	}, args...)...))
	return at
}

func startConsul(tb testing.TB) string {
	const token = "8b9a3a3c-0000-4000-8000-000000000001"
	at := testbed.StartConsul(tb, testbed.ConsulCluster{Version: "1.14", Token: token, More: map[string]any{
		"acl": map[string]any{
			"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": token},
		},
	}})[0].Addr()
	return serving(tb, "consul://:"+token+"@"+at+"/app/locks?lockdelay=1s")
}

func startSecureConsul(tb testing.TB) string {
	ca, cert, key := testbed.Certificate(tb, "localhost")
	port := testbed.Port(tb)
	testbed.StartConsul(tb, testbed.ConsulCluster{Version: "1.14", Ports: map[string]int{"https": port},
		More: map[string]any{"tls": map[string]any{"https": map[string]any{
			"ca_file": ca, "cert_file": cert, "key_file": key, "verify_incoming": true,
		}}}})
	return serving(tb, fmt.Sprintf("consul://localhost:%d?tls=true&%s", port, certificates(ca, cert, key)))
}
