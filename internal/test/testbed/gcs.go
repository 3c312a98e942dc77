package testbed

import (
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// GCS is a server of the test's own that talks as Google Cloud Storage does.
type GCS struct {
	*Process
	tb   testing.TB
	addr string
	args []string
}

// StartFakeGCS runs a fake-gcs-server with a bucket until the test ends, and returns when it
// listens. It asks for no credentials. It keeps objects in memory, or in the folder root if that
// is not empty. A folder is for tests that restart the server. There a read can return a newer
// object than its generation says, and each write waits for the disk. .ci/servers installs the
// server. Without it, the test is treated as by [Missing].
func StartFakeGCS(tb testing.TB, bucket, root string, args ...string) *GCS {
	tb.Helper()
	port := strconv.Itoa(Port(tb))
	s := &GCS{tb: tb, addr: "127.0.0.1:" + port, args: append([]string{
		Built(tb, "fake-gcs"), "-host", "127.0.0.1", "-port", port, "-scheme", "http", "-log-level", "error",
		"-public-host", "127.0.0.1:" + port,
	}, args...)}
	if root == "" {
		s.args = append(s.args, "-backend", "memory")
	} else {
		s.args = append(s.args, "-backend", "filesystem", "-filesystem-root", root)
	}
	s.Restart()
	client := &http.Client{Timeout: Hang, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post("http://"+s.addr+"/storage/v1/b", "application/json",
		strings.NewReader(`{"name": "`+bucket+`"}`))
	if err != nil {
		tb.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		tb.Fatalf("fake-gcs-server answers %s to the creation of a bucket", answer.Status)
	}
	return s
}

// Addr returns the address where the server listens.
func (s *GCS) Addr() string { return s.addr }

// URL returns the endpoint of the server.
func (s *GCS) URL() string { return "http://" + s.addr }

// Restart starts the server with the data on its disk, and returns when the server listens.
func (s *GCS) Restart() {
	s.tb.Helper()
	s.Process = Start(s.tb, exec.Command(s.args[0], s.args[1:]...))
	awaitListener(s.tb, "fake-gcs-server", s.addr)
}
