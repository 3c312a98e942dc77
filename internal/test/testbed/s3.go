package testbed

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Keys of the only user of an [S3].
const (
	S3Access = "locks-user"
	S3Secret = "ge?heim/@"
)

// S3 is a server of the test's own that talks as S3 does.
type S3 struct {
	*Process
	tb   testing.TB
	addr string
	cmd  *exec.Cmd
}

// StartVersitygw runs a versitygw with a bucket until the test ends, and returns when it listens.
// .ci/servers installs the server. Without it, the test is treated as by [Missing].
func StartVersitygw(tb testing.TB, bucket string, args ...string) *S3 {
	tb.Helper()
	path := Built(tb, "versitygw")
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, bucket), 0o755); err != nil {
		tb.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", Port(tb))
	args = append([]string{"--access", S3Access, "--secret", S3Secret, "--port", addr, "--quiet"}, args...)
	s := &S3{tb: tb, addr: addr, cmd: exec.Command(path, append(args, "posix", dir)...)}
	s.Restart()
	return s
}

// StartMotoS3 runs a moto with a bucket until the test ends, and returns when it listens. It
// accepts every key. It compares and writes in two steps, and another thread may run between
// them: a thread goes on for the time turn while other threads want to run. With a turn of
// seconds, threads change only when a thread waits, and no thread waits between the steps. With a
// turn of microseconds, the server breaks the promise of conditional writes. .ci/servers installs
// the server. Without it, the test is treated as by [Missing].
func StartMotoS3(tb testing.TB, bucket string, turn time.Duration) *S3 {
	tb.Helper()
	path, dir := Built(tb, "moto-server"), tb.TempDir()
	start := fmt.Sprintf("import sys\nsys.setswitchinterval(%f)\n", turn.Seconds())
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(start), 0o600); err != nil {
		tb.Fatal(err)
	}
	port := strconv.Itoa(Port(tb))
	s := &S3{tb: tb, addr: "127.0.0.1:" + port, cmd: exec.Command(path, "--host", "127.0.0.1", "--port", port)}
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	s.Restart()
	if err := motoRequest(http.MethodPut, s.addr, bucket); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Empty deletes everything on a moto, and makes the bucket anew.
func (s *S3) Empty(bucket string) error {
	return errors.Join(EmptyMoto(s.addr), motoRequest(http.MethodPut, s.addr, bucket))
}

// EmptyMoto deletes everything on the moto at addr.
func EmptyMoto(addr string) error { return motoRequest(http.MethodPost, addr, "moto-api/reset") }

func motoRequest(method, addr, path string) error {
	req, err := http.NewRequest(method, "http://"+addr+"/"+path, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: Hang, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("moto answers %s to %s %s", answer.Status, method, path)
	}
	return nil
}

// Addr returns the address where the server listens.
func (s *S3) Addr() string { return s.addr }

// Restart starts the server with the data on its disk, and returns when the server listens.
func (s *S3) Restart() {
	s.tb.Helper()
	cmd := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
	cmd.Env = s.cmd.Env
	s.Process = Start(s.tb, cmd)
	awaitListener(s.tb, s.cmd.Path, s.addr)
}

// awaitListener returns when a server listens.
func awaitListener(tb testing.TB, server, addr string) {
	tb.Helper()
	for end := time.Now().Add(Hang); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("%s: %v", server, err)
		}
	}
}
