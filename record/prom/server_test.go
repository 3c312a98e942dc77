package prom_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/prom"
)

// program returns the path of a program of Prometheus. Only outside of CI it may be missing.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(name + " is missing")
	}
	require.NoError(t, err)
	return path
}

func TestAlertsFireOnWhatTheyDescribe(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		out, err := exec.Command(program(t, "promtool"), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// A server scrapes the exporter while locks are in use. Each query of the dashboard has a result.
func TestARealServerAnswersEveryDashboardQuery(t *testing.T) {
	for _, c := range []struct {
		name      string
		flags     []string
		histogram string // shows that histograms arrive in this form
	}{
		{"native histograms", []string{"--enable-feature=native-histograms"},
			`histogram_count(locks_wait_seconds) > 0`},
		{"classic histograms", nil, `locks_wait_seconds_bucket{le="+Inf"} > 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := record.New(record.Options{})
			reg := prometheus.NewRegistry()
			require.NoError(t, reg.Register(prom.NewCollector(r)))
			exporter := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
			t.Cleanup(exporter.Close)
			r.Wrap("report", new(fair.Mutex)) // the series begin with 0
			r.Wrap("accounts", new(fair.Mutex))

			s := startServer(t, exporter.Listener.Addr().String(), c.flags...)
			s.wait(t, `locks_lost_total{lock="report"} == 0`)
			work(t, r)
			s.wait(t, `locks_lost_total{lock="report"} == 1`)

			variables := strings.NewReplacer("$__rate_interval", "1h", "$__range", "1h", "$job", ".*", "$lock", ".*")
			for _, query := range expressions(t) {
				if series, ok := strings.CutPrefix(query, "label_values("); ok {
					query = series[:strings.LastIndex(series, ",")]
				}
				s.wait(t, variables.Replace(query))
			}
			s.wait(t, c.histogram)
			s.wait(t, `ALERTS{alertname="LockLost", alertstate="firing", lock="report"}`)
		})
	}
}

// server is a Prometheus that scrapes one target and has the rules of alerts.yml.
type server struct {
	base   string
	client *http.Client
}

func startServer(t *testing.T, target string, flags ...string) *server {
	t.Helper()
	path := program(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("alerts.yml")
	require.NoError(t, err)
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 300ms, scrape_timeout: 300ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: shop
    static_configs: [{targets: [%q]}]
`, rules, target), 0o600))

	cmd := exec.Command(path, append([]string{"--config.file=" + config,
		"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var log bytes.Buffer
	listening, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			if _, address, found := strings.Cut(lines.Text(), `msg="Listening on" address=`); found {
				listening <- address
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	select {
	case address := <-listening:
		return &server{"http://" + address, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	case <-ended:
	case <-time.After(2 * time.Minute):
	}
	t.Fatal("Prometheus does not listen")
	return nil
}

// query returns the result of a query now, or nothing if the server does not answer yet.
func (s *server) query(t *testing.T, query string) []json.RawMessage {
	t.Helper()
	resp, err := s.client.Get(s.base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return nil
	}
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", query, body)
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(body, &answer), "%s", body)
	return answer.Data.Result
}

// wait waits until a query has a result.
func (s *server) wait(t *testing.T, query string) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); len(s.query(t, query)) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("no result: " + query)
		}
	}
}
