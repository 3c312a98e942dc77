package testbed

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// NATS is a server of a NATS cluster of the test's own, with JetStream.
type NATS struct {
	*Process
	tb     testing.TB
	name   string
	addr   string
	health string
	args   []string
}

// NATSCluster describes the cluster that [StartNATS] runs.
type NATSCluster struct {
	// Version is "2.15", of .ci/servers.
	Version string
	// Servers is how many there are, 1 if 0. Several are a cluster.
	Servers int
	// Domain is the domain of JetStream, or empty.
	Domain string
	// More is added to the configuration of each.
	More string
	// Route, if not nil, returns the address at which a server reaches another server that
	// listens at addr.
	Route func(from, to int, addr string) string
}

// StartNATS runs servers until the test ends, and returns when all of them answer. Without the
// program, the test is treated as by [Missing].
func StartNATS(tb testing.TB, c NATSCluster) []*NATS {
	tb.Helper()
	path := Built(tb, "nats-"+c.Version)
	servers := make([]*NATS, max(c.Servers, 1))
	local := func() string { return fmt.Sprintf("127.0.0.1:%d", Port(tb)) }
	var listens []string
	for range servers {
		listens = append(listens, local())
	}
	for i := range servers {
		dir, addr, monitor := tb.TempDir(), local(), local()
		name := fmt.Sprint("n", i)
		config := fmt.Sprintf("server_name: %s\nlisten: %q\nhttp: %q\njetstream { store_dir: %q, domain: %q }\n%s\n",
			name, addr, monitor, dir, c.Domain, c.More)
		if len(servers) > 1 {
			advertise := listens[i]
			var routes []string
			for to, listen := range listens {
				switch {
				case to == i:
				case c.Route == nil:
					routes = append(routes, fmt.Sprintf("%q", "nats://"+listen))
				default: // the only way: that of which others would tell leads nowhere
					advertise = "127.0.0.1:1"
					routes = append(routes, fmt.Sprintf("%q", "nats://"+c.Route(i, to, listen)))
				}
			}
			config += fmt.Sprintf("cluster { name: it, listen: %q, advertise: %q, routes: [%s] }\n",
				listens[i], advertise, strings.Join(routes, ", "))
		}
		file := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			tb.Fatal(err)
		}
		servers[i] = &NATS{
			tb: tb, name: name, addr: addr, health: "http://" + monitor + "/healthz",
			args: []string{path, "--config", file, "--log", filepath.Join(dir, "log")},
		}
		servers[i].Start()
	}
	for _, s := range servers {
		s.Ready()
	}
	return servers
}

// Start starts the killed server again, with the data on its disk.
func (s *NATS) Start() { s.Process = Start(s.tb, exec.Command(s.args[0], s.args[1:]...)) }

// Addr returns the address for clients.
func (s *NATS) Addr() string { return s.addr }

// Name returns what the server is called in its cluster.
func (s *NATS) Name() string { return s.name }

// Ready returns when the server answers, and its streams have caught up.
func (s *NATS) Ready() {
	s.tb.Helper()
	client := &http.Client{Timeout: askAgain, Transport: &http.Transport{DisableKeepAlives: true}}
	for end := time.Now().Add(Hang); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := client.Get(s.health); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			s.tb.Fatalf("NATS at %s does not answer", s.addr)
		}
	}
}
