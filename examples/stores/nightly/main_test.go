package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testbed.Children())
}

func TestOneOfFourMachinesDoesTheJob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nightly")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	environment := append(os.Environ(), "AWS_ENDPOINT_URL=http://"+testbed.StartVersitygw(t, "nightly").Addr(),
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID="+testbed.S3Access, "AWS_SECRET_ACCESS_KEY="+testbed.S3Secret)
	var all bytes.Buffer
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(path)
			cmd.Env = environment
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			all.Write(out)
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 3, strings.Count(all.String(), "did part"), all.String())
}
