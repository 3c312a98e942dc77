package testbed

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Consul is a server of a Consul cluster of the test's own.
type Consul struct {
	*Process
	tb    testing.TB
	name  string
	addr  string
	token string
	args  []string
}

// ConsulCluster describes the cluster that [StartConsul] runs.
type ConsulCluster struct {
	// Version is "1.14", of .ci/servers.
	Version string
	// Servers is how many there are, 1 if 0. A server alone keeps its data in memory.
	Servers int
	// Token is that with all rights, if the configuration has one.
	Token string
	// Ports are further ports of the first server, such as the port of "https".
	Ports map[string]int
	// More is added to the configuration of each.
	More map[string]any
}

// StartConsul runs servers until the test ends, and returns when all of them know a leader. They
// permit sessions of a second, and more. Without the program, the test is treated as by [Missing].
func StartConsul(tb testing.TB, c ConsulCluster) []*Consul {
	tb.Helper()
	path := Built(tb, "consul-"+c.Version)
	servers := make([]*Consul, max(c.Servers, 1))
	const inner = "127.0.0.2" // servers talk by UDP too, whose ports of 127.0.0.1 are claimed by Port
	var lans []int
	var gossip []string
	for range servers {
		lans = append(lans, Port(tb))
		gossip = append(gossip, fmt.Sprintf("%s:%d", inner, lans[len(lans)-1]))
	}
	for i := range servers {
		dir, web := tb.TempDir(), Port(tb)
		s := &Consul{tb: tb, name: fmt.Sprint("n", i), addr: fmt.Sprintf("127.0.0.1:%d", web), token: c.Token}
		config := map[string]any{
			"node_name": s.name, "bind_addr": inner, "client_addr": "127.0.0.1", "log_level": "error",
			"disable_update_check": true, "session_ttl_min": "1s", "leave_on_terminate": false,
			"limits":      map[string]any{"http_max_conns_per_client": 10_000},
			"performance": map[string]any{"raft_multiplier": 1},
		}
		ports := map[string]int{
			"http": web, "server": Port(tb), "serf_lan": lans[i],
			"dns": -1, "https": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1,
		}
		if i == 0 {
			maps.Copy(ports, c.Ports)
		}
		config["ports"] = ports
		s.args = []string{path, "agent", "-config-file", filepath.Join(dir, "consul.json")}
		if len(servers) == 1 {
			s.args = append(s.args, "-dev")
		} else {
			config["server"], config["bootstrap_expect"] = true, len(servers)
			config["data_dir"], config["retry_join"] = filepath.Join(dir, "data"), gossip
			config["retry_interval"] = "1s"
		}
		maps.Copy(config, c.More)
		text, err := json.Marshal(config)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "consul.json"), text, 0o600)
		}
		if err != nil {
			tb.Fatal(err)
		}
		servers[i] = s
		s.Start()
	}
	for _, s := range servers {
		s.Ready()
	}
	return servers
}

// Start starts the killed server again, with the data on its disk.
func (s *Consul) Start() { s.Process = Start(s.tb, exec.Command(s.args[0], s.args[1:]...)) }

// Addr returns the address for clients.
func (s *Consul) Addr() string { return s.addr }

// Name returns what the server is called in its cluster.
func (s *Consul) Name() string { return s.name }

// Ready returns when the server knows a leader, which reads and writes.
func (s *Consul) Ready() {
	s.tb.Helper()
	client := &http.Client{Timeout: askAgain, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := func() bool {
		url := "http://" + s.addr + "/v1/catalog/nodes?consistent&filter=Node==" + s.name
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			s.tb.Fatal(err)
		}
		req.Header.Set("X-Consul-Token", s.token)
		answer, err := client.Do(req)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		nodes, err := io.ReadAll(answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK && len(nodes) > len("[]\n")
	}
	for end := time.Now().Add(Hang); !answers(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.tb.Fatalf("Consul at %s does not answer", s.addr)
		}
	}
}
