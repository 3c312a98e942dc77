package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/bench"
)

// The environment of a fake tool.
const (
	fakeData = "COMPARE_FAKE_DATA"    // the folder of recorded output
	fakeLogs = "COMPARE_FAKE_LOGS"    // the folder of logs
	fakeFail = "COMPARE_FAKE_FAIL"    // the tool that fails, with its first argument
	fakeSays = "COMPARE_FAKE_SAYS"    // what it says then
	fakeHang = "COMPARE_FAKE_HANG"    // the tool that hangs
	hangAt   = "COMPARE_FAKE_HANG_AT" // the address of the test, which it connects to
	isChild  = "COMPARE_FAKE_CHILD"   // set for the process that a hanging tool starts
)

// isFake reports whether this test binary was called by the name of a tool.
func isFake(tool string) bool {
	return os.Getenv(fakeData) != "" && slices.Contains(allTools, tool)
}

// fake is a tool that measures nothing, and gives recorded output.
func fake(tool string, args []string) (code int) {
	if tool == os.Getenv(fakeHang) {
		hang()
	}
	if os.Getenv(fakeFail) == tool+" "+args[0] {
		fmt.Println(os.Getenv(fakeSays))
		return 1
	}
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.Getwd()
	check(err)
	log, err := os.OpenFile(filepath.Join(os.Getenv(fakeLogs), tool), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	fmt.Fprintf(log, "%s\n%s\n", dir, strings.Join(args, " "))
	check(log.Close())
	recorded := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(os.Getenv(fakeData), name))
		check(err)
		return text
	}
	needs := func(path string) {
		_, err := os.Stat(path)
		check(err)
	}
	switch {
	case tool == "mvn":
		needs("pom.xml")
		needs("src/main/java/compare/JDK.java")
	case tool == "java":
		check(os.WriteFile(args[slices.Index(args, "-rff")+1], recorded("jmh.json"), 0o600))
	case tool == "cargo" && args[0] == "build":
		needs("Cargo.toml")
		needs("src/main.rs")
	case tool == "cargo":
		fmt.Println("  " + string(recorded("parking_lot.json")))
	case tool == "rustc":
		fmt.Println("rustc 1.95.0 (59807616e 2026-04-14)")
	}
	return 0
}

// hang connects to the test, starts another process that does so, and stays.
func hang() {
	conn, err := net.Dial("tcp", os.Getenv(hangAt))
	if err != nil {
		panic(err)
	}
	if os.Getenv(isChild) == "" {
		child := exec.Command(os.Args[0], "child")
		child.Env = append(os.Environ(), isChild+"=1")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	_, _ = io.Copy(io.Discard, conn) // The test sends nothing. It closes the connection if it fails.
	os.Exit(3)
}

// install makes this test binary the tools, and returns the folder of their logs. Nothing else is
// installed.
func install(t *testing.T, tools ...string) (logs string) {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	for _, tool := range tools {
		require.NoError(t, os.Symlink(binary, filepath.Join(bin, tool)))
	}
	data, err := filepath.Abs("testdata")
	require.NoError(t, err)
	logs = t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv(fakeData, data)
	t.Setenv(fakeLogs, logs)
	return logs
}

var allTools = []string{"java", "mvn", "cargo", "rustc"}

// others is a run that the recorded output fits: three rounds of these benchmarks.
var others = []string{
	"-other", "-rounds", "3", "-slot", "50us",
	"-run", `^uncontended/(sync.Mutex|JDK ReentrantLock|parking_lot::Mutex)$|` +
		`^(contended, 2 goroutines|condition ping-pong)/(JDK|parking_lot)`,
}

func TestOtherLanguagesAreMeasuredAfterTheRounds(t *testing.T) {
	logs := install(t, allTools...)
	code, stdout, stderr := invoke(t, append(others, "-json")...)
	require.Equal(t, exitOK, code, stderr)
	var r Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Workloads, 3)
	figures := map[string]Figures{}
	for _, w := range r.Workloads {
		for i, f := range w.Subjects {
			figures[w.Name+"/"+f.Name] = f
			assert.True(t, i == 0 || w.Subjects[i-1].Median <= f.Median, "cheapest first")
		}
	}
	require.Len(t, figures, 7)
	assert.Positive(t, figures["uncontended/sync.Mutex"].Median)
	assert.Equal(t, 5.47795191992443, figures["uncontended/parking_lot::Mutex"].Median)
	assert.Equal(t, []float64{44842.9547753077, 33109.892185860124, 7442.298349394142},
		figures["condition ping-pong/parking_lot::Condvar"].Rounds)
	assert.Len(t, figures["condition ping-pong/JDK ReentrantLock"].Rounds, 3)
	assert.Positive(t, figures["uncontended/JDK ReentrantLock"].Low)
	require.Len(t, r.Others, 2)
	assert.Equal(t, "JDK 17.0.15 (OpenJDK 64-Bit Server VM), JMH 1.37", r.Others[0].Versions)
	assert.Equal(t, "parking_lot 0.12.5, rustc 1.95.0", r.Others[1].Versions)
	assert.Empty(t, r.Verdicts, "the others are no reference of targets")

	log := func(tool string) []string {
		text, err := os.ReadFile(filepath.Join(logs, tool))
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	jmh, cargo := log("java"), log("cargo")
	assert.Contains(t, jmh[1], " -i 3 -r 50ms ")
	assert.Contains(t, jmh[1], ` ^compare\.JDK\.(uncontended|contended2|pingPong)$`)
	assert.Contains(t, cargo[3], "-- 3 50000 uncontended contended2 ping_pong")
	for _, dir := range []string{log("mvn")[0], jmh[0], cargo[0]} {
		assert.NoDirExists(t, dir, "nothing is left")
	}
}

func TestTablesAndPageSayHowOthersWereMeasured(t *testing.T) {
	install(t, allTools...)
	path := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := invoke(t, append(others, "-page", path)...)
	require.Equal(t, exitOK, code, stderr)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, out := range []string{stdout, string(text)} {
		for _, want := range []string{
			"Measured after these rounds, not in them, and with threads: JDK 17.0.15 ", "JMH 1.37", "rustc 1.95.0",
			"JDK ReentrantLock", "parking_lot::Condvar",
		} {
			assert.Contains(t, out, want)
		}
	}
}

func TestWithoutAToolItsLocksAreLeftOut(t *testing.T) {
	install(t, "java", "cargo", "rustc")
	code, stdout, stderr := invoke(t, "-other", "-list")
	require.Equal(t, exitOK, code)
	assert.Equal(t, "compare: the JDK is left out: mvn is not installed\n", stderr)
	assert.NotContains(t, stdout, "JDK")
	assert.Contains(t, stdout, "re-entry/parking_lot::ReentrantMutex\n")

	install(t)
	_, _, stderr = invoke(t, "-other", "-list")
	assert.Equal(t, "compare: the JDK is left out: java and mvn are not installed\n"+
		"compare: parking_lot is left out: cargo and rustc are not installed\n", stderr)
}

func TestOtherLanguagesAreMeasuredOnlyOnRequest(t *testing.T) {
	install(t, allTools...)
	_, stdout, stderr := invoke(t, "-list")
	assert.Empty(t, stderr)
	assert.NotContains(t, stdout, "JDK")
	assert.NotContains(t, stdout, "parking_lot")
}

func TestFailedToolIsQuoted(t *testing.T) {
	for _, c := range []struct{ call, says, want string }{
		{
			"mvn -q", "\x1b[0m[ERROR] COMPILATION ERROR : \n[ERROR] No compiler is provided here.\n[ERROR] [Help 1]",
			"compare: build the benchmarks of the JDK: mvn: exit status 1: [ERROR] No compiler is provided here.",
		},
		{
			"cargo build", "error: failed to select a version\ncandidate versions found which didn't match: 0.13.0",
			"compare: build the benchmarks of parking_lot: cargo: exit status 1: error: failed to select a version",
		},
		{"cargo run", "Killed", "compare: measure parking_lot: cargo: exit status 1: Killed"},
		{"rustc --version", "", "compare: measure parking_lot: rustc: exit status 1"},
	} {
		install(t, allTools...)
		t.Setenv(fakeFail, c.call)
		t.Setenv(fakeSays, c.says)
		code, stdout, stderr := invoke(t, others...)
		assert.Equal(t, exitFailed, code, c.call)
		assert.Empty(t, stdout)
		lines := strings.Split(stderr[strings.LastIndex(stderr, "\r")+1:], "\n")
		assert.Equal(t, []string{c.want, ""}, lines)
	}
}

func TestComplaintIsTheFirstLineNamingTheMistake(t *testing.T) {
	for output, want := range map[string]string{
		"":                                   "",
		"one\n\n  two \n\n":                  "two",
		"warning: x\nerror[E0601]: y\nerror": "error[E0601]: y",
		"<failure>\n\njava.lang.Error: x\n\tat y\n\nERROR: z": "java.lang.Error: x",
		"\x1b[0m[ERROR] Failed\n[ERROR] Help":                 "[ERROR] Failed",
	} {
		assert.Equal(t, want, complaint(output))
	}
}

func TestUselessResultsAreRefused(t *testing.T) {
	result := func(unit, data string) string {
		return fmt.Sprintf(`[{"benchmark": "compare.JDK.read", "primaryMetric": {"scoreUnit": %q, "rawData": %s}}]`,
			unit, data)
	}
	costs, _, err := parseJMH([]byte(result("ops/ns", "[[0.5, 0.25], [2]]")))
	require.NoError(t, err)
	assert.Equal(t, map[string][]float64{"read": {2, 4, 0.5}}, costs)
	for text, want := range map[string]string{
		result("ops/s", "[[1]]"):       `read is in "ops/s", want ops/ns`,
		result("ops/ns", "[[0]]"):      "an iteration of compare.JDK.read did nothing",
		result("ops/ns", `[["NaN"]]`):  "results of JMH",
		result("ops/ns", "[[1]]")[:50]: "results of JMH",
	} {
		_, _, err := parseJMH([]byte(text))
		assert.ErrorContains(t, err, want)
	}
	install(t, allTools...)
	_, _, stderr := invoke(t, "-other", "-rounds", "3", "-slot", "50us", "-run", "parking_lot::FairMutex")
	assert.Contains(t, stderr, "measure parking_lot: uncontended_fair has 0 rounds, want 3")
}

func TestProgramsHaveTheBenchmarks(t *testing.T) {
	known := map[string]bool{}
	for _, w := range workloads() {
		known[w.Name] = true
	}
	// How each program begins a benchmark.
	begin := map[string]string{
		"jdk":         `(?s)@Benchmark\n(?:    @[^\n]*\n)*    public \w+ (\w+)\(`,
		"parking_lot": `(?m)^        "(\w+)" =>`,
	}
	for _, p := range programs() {
		var source strings.Builder
		require.NoError(t, fs.WalkDir(projects, p.dir+"/src", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := projects.ReadFile(path)
			source.Write(text)
			return err
		}))
		var there, here []string
		for _, found := range regexp.MustCompile(begin[p.dir]).FindAllStringSubmatch(source.String(), -1) {
			there = append(there, found[1])
		}
		taken := map[string]bool{}
		for _, b := range p.benchmarks {
			here = append(here, b.name)
			assert.True(t, known[b.workload], b.workload)
			assert.False(t, taken[b.workload+"/"+b.subject], "%s/%s twice", b.workload, b.subject)
			taken[b.workload+"/"+b.subject] = true
			assert.False(t, bench.Subject{Name: b.subject}.Ours(), b.subject)
		}
		assert.ElementsMatch(t, there, here, p.name)
	}
}

// TestTheJDKIsMeasured needs Maven and a JDK, and fetches JMH if it is not here yet.
func TestTheJDKIsMeasured(t *testing.T) {
	for _, tool := range []string{"java", "mvn"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err)
	}
	var stdout, stderr string
	code := -1
	for try := range 3 { // for the sake of the downloads
		time.Sleep(time.Duration(try) * 10 * time.Second)
		code, stdout, stderr = invoke(t, "-other", "-json", "-rounds", "2", "-slot", "1ms",
			"-run", "^(re-entry|condition ping-pong|contended, 2 goroutines)/JDK")
		if code == exitOK || !strings.Contains(stderr, "build the benchmarks") {
			break
		}
	}
	require.Equal(t, exitOK, code, stderr)
	var r Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Workloads, 3)
	for _, w := range r.Workloads {
		require.Len(t, w.Subjects, 1, w.Name)
		assert.Equal(t, "JDK ReentrantLock", w.Subjects[0].Name)
		assert.Len(t, w.Subjects[0].Rounds, 2)
		assert.Positive(t, w.Subjects[0].Low, w.Name)
		// A second is an operation that hangs.
		assert.Less(t, w.Subjects[0].Median, float64(time.Second), w.Name)
	}
	require.Len(t, r.Others, 1)
	assert.Regexp(t, `^JDK [0-9.]+ \(.*\), JMH 1\.`, r.Others[0].Versions)
}
