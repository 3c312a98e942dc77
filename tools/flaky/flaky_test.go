package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(loopVariable) != "" {
		loop()
	}
	if args, ok := os.LookupEnv("FLAKY_TEST_ARGUMENTS"); ok {
		if err := command(strings.Fields(args)); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// planted is a package whose tests fail at known runs.
const planted = `package planted

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("PLANTED_LEAK") != "" && runtime.GOMAXPROCS(0) == 1 {
		println("a goroutine has leaked")
		code = 1
	}
	os.Exit(code)
}

func TestAlwaysPasses(t *testing.T) {
	if _, err := os.Stat("planted_test.go"); err != nil || os.Getenv("CI") != "true" {
		t.Fatal("not in its folder, or without CI", err)
	}
}

func TestFailsWithTwoProcessors(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		if runtime.GOMAXPROCS(0) == 2 {
			t.Fatal("this is the planted failure")
		}
	})
}

func TestWaits(t *testing.T) {
	for range 2 {
		t.Run("beside", func(t *testing.T) {
			t.Parallel()
			time.Sleep(300 * time.Millisecond)
		})
	}
}

func TestEndsTheProcess(t *testing.T) {
	println("the process ends")
	os.Exit(3)
}

func TestHangs(t *testing.T) {
	t.Run("inside", func(t *testing.T) { time.Sleep(time.Hour) })
}
`

func plant(t *testing.T) options {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/planted\n\ngo 1.26\n")
	write("planted_test.go", planted)
	t.Setenv("GOWORK", "off")
	return options{folder: folder, runs: 6, beside: 1, loops: 2, timeout: time.Minute}
}

// wantLines checks that out has lines that match all patterns.
func wantLines(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(out) {
			t.Errorf("no line matches %s:\n%s", pattern, out)
		}
	}
}

func (o options) output(t *testing.T, wantFailed int) string {
	t.Helper()
	var out strings.Builder
	failed, err := o.repeat(t.Context(), &out)
	if err != nil || failed != wantFailed {
		t.Errorf("%d runs failed, want %d: %v", failed, wantFailed, err)
	}
	return out.String()
}

func TestAPlantedFailureIsCountedAndShown(t *testing.T) {
	o := plant(t)
	o.run = "TestAlways|TestFails|TestWaits"
	o.beside = 2
	out := o.output(t, 2)
	wantLines(t, out,
		`^FAIL TestFailsWithTwoProcessors/planted in run \d, GOMAXPROCS=2:$`, `this is the planted failure$`,
		`^TestFailsWithTwoProcessors +6 +2 `, `^TestAlwaysPasses +6 +0 `, `^\(the whole binary\) +6 +0 `,
		`^6 runs, 2 failed\n\z`)
	// Subtests that are parallel take their time in their parent.
	if !regexp.MustCompile(`TestWaits +6 +0 +(0\.[3-9]|[1-9])`).MatchString(out) {
		t.Errorf("TestWaits did not take 0.3 s:\n%s", out)
	}
	if strings.Contains(out, "TestWaits/") {
		t.Errorf("subtests that passed are listed:\n%s", out)
	}
}

func TestATestThatEndsTheProcessIsBlamed(t *testing.T) {
	o := plant(t)
	o.run, o.runs = "TestAlways|TestEnds", 2
	wantLines(t, o.output(t, 2), `^TestEndsTheProcess +2 +2 `, `^the process ends$`, `^exit status 3$`)
}

func TestATestThatHangsIsBlamed(t *testing.T) {
	o := plant(t)
	o.run, o.runs, o.timeout = "TestHangs", 1, 100*time.Millisecond
	out := o.output(t, 1)
	wantLines(t, out, `^TestHangs +1 +1 `, `^TestHangs/inside +1 +1 `)
	if n := strings.Count(out, "panic: test timed out"); n != 1 {
		t.Errorf("the output is there %d times:\n%s", n, out)
	}
}

func TestAFailureOfNoTestIsThatOfTheBinary(t *testing.T) {
	o := plant(t)
	t.Setenv("PLANTED_LEAK", "1")
	o.run, o.runs = "TestAlways", 3
	wantLines(t, o.output(t, 1), `^\(the whole binary\) +3 +1 `, `^TestAlwaysPasses +3 +0 `, `^a goroutine has leaked$`)
}

func TestAPackageWithoutTestsIsNamed(t *testing.T) {
	o := plant(t)
	planted := filepath.Join(o.folder, "planted")
	if err := os.Rename(planted+"_test.go", planted+".go"); err != nil {
		t.Fatal(err)
	}
	_, err := o.repeat(t.Context(), new(strings.Builder))
	if err == nil || !strings.Contains(err.Error(), "has no tests") {
		t.Errorf("the error is %v", err)
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range []string{"", "fair spin", "fair -n 0", "-unknown fair"} {
		if err := command(strings.Fields(args)); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := command([]string{"no/such/package"}); err == nil || errors.Is(err, errUsage) {
		t.Errorf("a package that does not exist: %v", err)
	}
}

func TestAPackageIsFoundByPathAndByImportPath(t *testing.T) {
	want, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "tools/flaky", "./tools/flaky", "github.com/jucgo/locks/tools/flaky"} {
		if got, err := find(name); got != want {
			t.Errorf("%s is in %s: %v", name, got, err)
		}
	}
}

func TestTheLoopsEndWithTheirFunction(t *testing.T) {
	stop, err := startLoops(3)
	if err != nil {
		t.Fatal(err)
	}
	loops := children(t, os.Getpid())
	if len(loops) < 3 {
		t.Fatalf("the processes are %v", loops)
	}
	stop()
	wantGone(t, loops)
}

// However flaky ends, its loops end too.
func TestTheLoopsEndWithTheirParent(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			o := plant(t)
			cmd := exec.CommandContext(context.Background(), os.Args[0])
			cmd.Env = append(os.Environ(), "FLAKY_TEST_ARGUMENTS="+o.folder+" -loops 3 -run TestHangs")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var started []int
			for limit := time.Now().Add(time.Minute); len(started) < 5; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("the processes are %v", started)
				}
				started = children(t, cmd.Process.Pid) // three loops, the tests, and test2json
			}
			if err := cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if end == syscall.SIGKILL {
				// A hanging test binary is left, which has a time limit of its own.
				for _, pid := range started {
					if exe, _ := os.Readlink(proc(pid, "exe")); strings.HasSuffix(exe, "package.test") {
						syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			}
			wantGone(t, started)
		})
	}
}
