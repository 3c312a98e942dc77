package explore

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tag is the build tag of programs whose locks announce their operations.
const Tag = "lockexplore"

// again runs the test in a process whose locks announce their operations. A test with several calls
// of Run does so at the first.
func again(t *testing.T) {
	t.Helper()
	if _, ran := ranAgain.LoadOrStore(t.Name(), true); ran {
		return
	}
	binary, err := tagged()
	if err != nil {
		t.Fatalf("explore: %v", err)
	}
	parts := strings.Split(t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	args := []string{"-test.run=" + strings.Join(parts, "/"), "-test.count=1"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	out, err := exec.Command(binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("explore: the test with the tag %s: %v\n%s", Tag, err, out)
	}
	if strings.Contains(string(out), "no tests to run") {
		t.Fatalf("explore: the test with the tag %s has not run:\n%s", Tag, out)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
}

var ranAgain sync.Map // names of tests

// tagged builds the tests of the package in the working directory with the tag, once.
var tagged = sync.OnceValues(func() (string, error) {
	tags := Tag
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" && s.Value != "" {
				tags = s.Value + "," + Tag
			}
		}
	}
	binary, err := place(tags)
	if err != nil {
		return "", err
	}
	args := []string{"test", "-c", "-vet=off", "-tags=" + tags, "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("the go command is not there to build the tests with the tag %s: "+
			"run them with go test -tags %s", Tag, Tag)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return binary, nil
})

// place returns where the binary of the package in the working directory goes. There is one for
// each package and process of tests that runs at a time; the next one writes over it.
func place(tags string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	fmt.Fprint(h, folder, tags, raceEnabled)
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("lockexplore-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%x.test", h.Sum64())
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(dir, name), nil
}
