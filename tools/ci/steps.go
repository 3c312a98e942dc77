package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// modulePath is the path of the root module.
const modulePath = "github.com/jucgo/locks"

// core are the packages whose tests depend most on the number of processors.
var core = []string{
	"./internal/syncq", "./internal/shares", "./internal/waits", "./internal/park", "./internal/goid", "./fair",
	"./reentrant", "./condition", "./deadlock", "./distributed/lease",
}

// others are packages of the same kind, whose tests take longer and are repeated less often.
var others = []string{"./rwlock", "./spin", "./keyed", "./named"}

// narrow are the packages that are tested with integers of 32 bits.
var narrow = []string{
	".", "./internal/syncq", "./internal/shares", "./internal/waits", "./internal/park", "./internal/pause",
	"./internal/goid", "./fair", "./reentrant", "./condition", "./rwlock", "./spin", "./cas", "./keyed", "./named",
}

// newer is the second Go release that the library supports.
const newer = "GOTOOLCHAIN=go1.27.0"

// preparation is the part that each run needs.
const preparation = "setup"

// proofs is the pattern of the tests that prove a store.
const proofs = "Pass(es)?TheKit"

// A testedModule says how the tests of a module run. The tests of all others use the race detector
// and belong to the gate.
type testedModule struct {
	part     string
	plain    bool // without the race detector
	fullOnly bool
	onDisk   bool // its temporary files have to be on a disk
}

// modules are the modules beside the root module that are not tested as most are.
var modules = map[string]testedModule{
	"bench/compare":           {part: "labs", plain: true, fullOnly: true},
	"cmd/locklab":             {part: "labs"},
	"cmd/locklab/browsertest": {part: "labs", plain: true, fullOnly: true},
	"cmd/locklab/distributed": {part: "labs"},
	"cmd/lockvet":             {part: "lint", plain: true},
	"distributed/filelock":    {onDisk: true},
	"distributed/shmlock":     {onDisk: true},
}

// slowest are the modules whose tests take longest. They are the first to begin.
var slowest = []string{
	"distributed/sqllock", "distributed/redislock", "cmd/withlock", "distributed/etcdlock", "distributed/zklock",
	"distributed/s3lock", "distributed/dynamolock", "distributed/open/all", "distributed/redislock/onrueidis",
	"distributed/interop/redisson", "distributed/interop/curator", "examples/stores", "cmd/lockvet",
	"distributed/natslock", "cmd/locklab", "distributed/k8slock",
}

// gateServers are the servers that .ci/servers builds for the gate. The full run needs all of them.
var gateServers = []string{"moto-server", "nats-2.15"}

// steps returns all steps, in their order.
func (c *ci) steps() []step {
	all := []step{
		{"setup", preparation, "packages, servers of Debian, and modules are here", true, first, c.setup},
		{"format", "lint", "gofmt changes nothing", true, first, format},
		{"servers", "stores", "servers that Debian's stable releases lack are built", true, prepare, servers},
		// It compiles what most of the other steps need.
		{"vet", "lint", "go vet, staticcheck and lockvet over all modules, by one program", true, prepare, vet},

		{"models", "model", "the models of the protocols hold, and their mutants do not", true, checks, models},
		{"platforms", "platforms", "the root module and locks on files on other systems", true, checks, platforms},
		{"newer", "platforms", "the root module's tests with the newer Go release", true, checks, c.newer},
		{"scripts", "lint", "shellcheck over the scripts", true, checks, scripts},
		{"user", "user", "go get, go install, and the programs of the README in a module outside", true, checks, c.user},
		{"pages", "lint", "links, commands and programs of the pages, import rules, and the tools", true, checks, c.tools},
		{"hotpath", "lint", "what the fast paths compile to", true, checks, plain("./internal/test/hotpath")},
		{"api", "lint", "the lists of the exported API, and the requirements among the modules", true, checks,
			command("go", "run", "./tools/release", "check")},
		{"modules", "lint", "the modules are those of go.sum", true, checks, command("go", "mod", "verify")},

		{"tidy", "lint", "go mod tidy changes nothing", false, checks, tidy},
		{"alone", "lint", "each module builds without the workspace", false, checks,
			command("go", "run", "./tools/release", "build")},
		{"staticcheck", "lint", "staticcheck by itself", false, checks, command("go", "tool", "staticcheck", "work")},
		{"lockvet", "lint", "lockvet by itself", false, checks, c.lockvet},
		{"vulnerabilities", "lint", "known vulnerabilities of what the modules use", false, checks, vulnerabilities},
		{"clients", "platforms", "the adapters with their clients on other systems, and the root module in a browser",
			false, checks, c.clients},
		{"narrow", "platforms", "integers of 32 bits", false, checks, narrowly},
		{"emulated", "platforms", "the engine on arm64, emulated", false, checks, emulated},
	}
	all = append(all,
		step{"races", "core", "the root module's tests with the race detector, without those of the core", true, tests, races},
		step{"processors", "core", "the core with the race detector, on one, all and eight processors", true, tests, processors})
	for _, m := range c.tested() {
		how := modules[m]
		s := step{m, how.part, "the tests of the module", !how.fullOnly, tests, c.module(m)}
		if s.part == "" {
			s.part = "stores"
		}
		all = append(all, s)
	}
	return append(all, []step{
		{"comparison", "labs", "the comparison of the README", false, last, command("go", "run", "./bench/fairness", "-quick")},
		{"lab", "labs", "the lab of the README", false, last, lab("./cmd/locklab")},
		{"labdistributed", "labs", "the lab of locks between processes", false, last, lab("./cmd/locklab/distributed")},
		{"newerraces", "platforms", "all light modules compile with the newer Go release, and the root module's tests find no race",
			false, last, newerRaces},
		{"repeatedly", "core", "few and many processors, repeatedly", false, last, repeatedly},
		{"plain", "core", "few and many processors without the race detector", false, last, plainly},
		{"simulation", "core", "simulated lives find each flaw of a store, and mistakes in what uses it", false, last,
			plain("-tags=simulation", "-run=^TestLivesFind", "-timeout=2h", "./distributed/lease/leasetest",
				"./distributed/caslock", "./distributed/redislock", "./distributed/redislock/redlock")},
		{"lives", "core", "the page of stores tells how many hours a gate simulates", false, last, c.lives},
		{"searches", "core", "explore searches all schedules of its tests", false, last,
			plain("-tags=lockexplore,simulation", "./lockstest/explore")},
		{"benchmarks", "core", "every benchmark runs", false, last, benchmarks},
		{"fuzz", "core", "every fuzz target runs for half a minute", false, last, command(".ci/fuzz", "30s")},
		{"redis", "stores", "the locks on Redis 6.2 and 8, and on Valkey 9", false, last, command(".ci/redis")},
		{"proofs", "stores", "the proof of each store on each topology: several clients, and faults on the network",
			false, last, c.proofs},
		{"allocations", "stores", "allocations of the adapters and exporters", false, last, c.allocations},

		// It counts allocations and instructions, and judges times.
		{"readme", "core", "the test command of the README", true, last, c.readmeCommand},
	}...)
}

// command returns a step that runs one command.
func command(name string, args ...string) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) error { return j.sh(ctx, name, args...) }
}

// lives lives the lives of the gate, and compares their hours with those of the page.
func (c *ci) lives(ctx context.Context, j *job) error {
	dir, err := os.MkdirTemp("", "lives")
	if err != nil {
		return err
	}
	err = j.sh(ctx, "go", "run", "./tools/lives", "-gate", "-for", "1h", "-ledger", filepath.Join(dir, "lives.json"),
		"-findings", dir, "-page", "docs/guides/stores.md")
	if err != nil {
		return fmt.Errorf("%w; see the findings in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

// plain returns a step that tests packages of the root module without the race detector.
func plain(args ...string) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) error {
		return j.goTest(ctx, ".", nil, append([]string{"-count=1"}, args...)...)
	}
}

// setup installs what the steps of the run need.
func (c *ci) setup(ctx context.Context, j *job) error {
	needs := slices.Concat(c.names, c.parts)
	if c.full {
		needs = append(needs, "full")
	}
	if err := j.sh(ctx, ".ci/install", needs...); err != nil {
		return err
	}
	return j.retry(ctx, "go", "list", "-deps", "-test", "work")
}

func format(ctx context.Context, j *job) error {
	unformatted, err := j.output(ctx, "gofmt", "-l", ".")
	if err == nil && unformatted != "" {
		err = errors.New("gofmt would change:\n" + unformatted)
	}
	return err
}

func servers(ctx context.Context, j *job) error {
	if j.full {
		return j.sh(ctx, ".ci/servers")
	}
	return j.sh(ctx, ".ci/servers", gateServers...)
}

func vet(ctx context.Context, j *job) error {
	tool := filepath.Join(j.temp, "vet")
	if err := j.sh(ctx, "go", "build", "-o", tool, "./tools/vet"); err != nil {
		return err
	}
	// With the flags of the tests, each package is compiled once for both. Few files are for
	// builds without the race detector alone; staticcheck and lockvet of the full run see those.
	return j.sh(ctx, "go", "vet", "-race", "-vettool="+tool, "work")
}

func scripts(ctx context.Context, j *job) error {
	found, err := j.output(ctx, "sh", "-c", `grep -lE '^#!.*\b(ba)?sh$' $(git ls-files 2>/dev/null || find . -type f) 2>/dev/null`)
	if err != nil {
		return err
	}
	return j.sh(ctx, "shellcheck", append([]string{"-x", ".ci/functions"}, strings.Fields(found)...)...)
}

// tools tests the packages of the module tools, but for the user of the release.
func (c *ci) tools(ctx context.Context, j *job) error {
	listed, err := j.output(ctx, "go", "list", "./tools/...")
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(listed), func(p string) bool { return path.Base(p) == "consumer" })
	return j.goTest(ctx, ".", nil, append([]string{"-count=1"}, packages...)...)
}

func (c *ci) user(ctx context.Context, j *job) error {
	args, err := c.skip("tools")
	if err != nil {
		return err
	}
	return j.goTest(ctx, "tools", nil, append(args, "-count=1", "./consumer")...)
}

// system is a kind of system that Go compiles for.
type system struct{ os, arch string }

func (s system) env() []string { return []string{"GOOS=" + s.os, "GOARCH=" + s.arch, "CGO_ENABLED=0"} }

// platforms vets what has code of its own for a system: the root module and locks on files. Each
// kind of system and each processor is there once. The full run has the root module on linux/arm64
// too.
func platforms(ctx context.Context, j *job) error {
	for _, s := range []system{{"linux", "386"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		patterns := []string{"./..."}
		if s.os != "linux" {
			patterns = append(patterns, "./distributed/filelock/...", "./distributed/shmlock/...")
		}
		cmd := j.command(ctx, "go", append([]string{"vet"}, patterns...)...)
		cmd.Env = append(cmd.Env, s.env()...)
		if err := j.finish(cmd); err != nil {
			return fmt.Errorf("%s/%s: %w", s.os, s.arch, err)
		}
	}
	return nil
}

// clients vets and builds the adapters on other systems with the clients of their stores. The
// databases and the stores over caslock lack code for single systems.
func (c *ci) clients(ctx context.Context, j *job) error {
	run := func(s system, args ...string) error {
		cmd := j.command(ctx, "go", args...)
		cmd.Env = append(cmd.Env, s.env()...)
		if err := j.finish(cmd); err != nil {
			return fmt.Errorf("%s/%s: %w", s.os, s.arch, err)
		}
		return nil
	}
	if err := run(system{"linux", "arm64"}, "vet", "./..."); err != nil {
		return err
	}
	for _, s := range []system{{"linux", "386"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		err := errors.Join(
			run(s, append([]string{"vet"}, packagesOf("distributed/redislock", "distributed/redislock/onrueidis",
				"distributed/zklock", "record/prom", "record/otel", "cmd/lockvet")...)...),
			run(s, append([]string{"build"}, packagesOf("distributed/sqllock", "distributed/etcdlock")...)...),
		)
		if err != nil {
			return err
		}
	}
	return errors.Join(run(system{"js", "wasm"}, "build", "./..."), run(system{"wasip1", "wasm"}, "build", "./..."))
}

func packagesOf(modules ...string) []string {
	patterns := make([]string, len(modules))
	for i, m := range modules {
		patterns[i] = "./" + m + "/..."
	}
	return patterns
}

// newer searches all, since a search takes several times as long with the race detector.
func (c *ci) newer(ctx context.Context, j *job) error {
	return j.goTest(ctx, ".", []string{newer, allSearches}, "-count=1", "./...")
}

func newerRaces(ctx context.Context, j *job) error {
	light, err := j.light(ctx)
	if err != nil {
		return err
	}
	cmd := j.command(ctx, "go", append([]string{"vet"}, light...)...)
	cmd.Env = append(cmd.Env, newer)
	if err := j.finish(cmd); err != nil {
		return err
	}
	return j.goTest(ctx, ".", []string{newer}, "-race", "-count=1", "./...")
}

func tidy(ctx context.Context, j *job) error {
	return j.retry(ctx, "go", "run", "./tools/release", "tidy")
}

// light returns the packages of all modules but those over the clients of Amazon or Kubernetes,
// which take minutes to compile or to analyse once more.
func (j *job) light(ctx context.Context) ([]string, error) {
	listed, err := j.output(ctx, "go", "list", "-f",
		`{{.ImportPath}} {{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "work")
	var light []string
	for line := range strings.Lines(listed) {
		if !strings.Contains(line, " k8s.io/") && !strings.Contains(line, " github.com/aws/") {
			light = append(light, strings.Fields(line)[0])
		}
	}
	return light, err
}

// lockvet runs lockvet as its users do. The scenarios of the lab show mistakes on purpose.
func (c *ci) lockvet(ctx context.Context, j *job) error {
	tool := filepath.Join(j.temp, "lockvet")
	light, err := j.light(ctx)
	if err != nil {
		return err
	}
	shows := regexp.MustCompile(`/cmd/locklab(/internal/.*)?$`)
	light = slices.DeleteFunc(light, shows.MatchString)
	if err := j.sh(ctx, "go", "build", "-o", tool, "./cmd/lockvet"); err != nil {
		return err
	}
	return j.sh(ctx, "go", append([]string{"vet", "-vettool=" + tool}, light...)...)
}

func vulnerabilities(ctx context.Context, j *job) error {
	err := j.quiet(ctx, "go", "tool", "govulncheck", "work")
	if err != nil && regexp.MustCompile(`(?m)^govulncheck: fetching vulnerabilities: `).Match(j.out.Bytes()) {
		fmt.Fprintln(&j.out, "warning: without a network nothing was looked up") // that is no defect
		return nil
	}
	return err
}

func narrowly(ctx context.Context, j *job) error {
	return j.goTest(ctx, ".", []string{"GOARCH=386", "CGO_ENABLED=0"}, append([]string{"-count=1"}, narrow...)...)
}

func emulated(ctx context.Context, j *job) error {
	for _, emulator := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		if found, err := j.output(ctx, "sh", "-c", "command -v "+emulator); err == nil {
			return j.goTest(ctx, ".", []string{"GOARCH=arm64", "CGO_ENABLED=0"}, "-count=1", "-exec="+strings.TrimSpace(found),
				"./internal/pause", "./internal/park", "./internal/goid", "./internal/syncq")
		}
	}
	return errors.New("qemu-aarch64 is missing")
}

func lab(folder string) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) error {
		return j.sh(ctx, "go", "run", folder, "-quick", "-o", filepath.Join(j.temp, "locklab.html"))
	}
}

func repeatedly(ctx context.Context, j *job) error {
	repeat := j.path(".ci/repeat")
	return errors.Join(
		j.goTest(ctx, ".", nil, append([]string{"-race", "-count=1", "-p=4",
			"-exec='" + repeat + "' 1:2 8:2 :4"}, core...)...),
		j.goTest(ctx, ".", nil, append([]string{"-race", "-count=1", "-p=4",
			"-exec='" + repeat + "' 1:1 8:1 :2"}, others...)...),
	)
}

// plainly repeats the core without the race detector, which changes how goroutines wait and when.
func plainly(ctx context.Context, j *job) error {
	return j.goTest(ctx, ".", nil, append([]string{"-count=1", "-p=4",
		"-exec='" + j.path(".ci/repeat") + "' 1:1 2:1 8:1"}, core...)...)
}

func benchmarks(ctx context.Context, j *job) error {
	return j.quiet(ctx, "go", "test", "-run=^$", "-bench=.", "-benchtime=20x", "./...")
}

// races tests all packages of the root module but the core, which is the next step's.
func races(ctx context.Context, j *job) error {
	listed, err := j.output(ctx, "go", "list", "./...")
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(listed), func(p string) bool {
		return slices.ContainsFunc(core, func(c string) bool { return p == modulePath+strings.TrimPrefix(c, ".") })
	})
	return j.goTest(ctx, ".", nil, append([]string{"-race", "-count=1"}, packages...)...)
}

// processors links each package once: with the race detector, that takes longer than most tests.
func processors(ctx context.Context, j *job) error {
	return j.goTest(ctx, ".", nil, append([]string{"-race", "-count=1",
		"-exec='" + j.path(".ci/repeat") + "' 1:1 :1 8:1"}, core...)...)
}

// readmeCommand runs the second command of the README. Its output is the end of the run's output,
// too.
func (c *ci) readmeCommand(ctx context.Context, j *job) error {
	page, err := os.ReadFile(j.path("README.md"))
	if err != nil {
		return err
	}
	pattern := testPattern(page)
	if pattern == "" {
		return errors.New("README.md has no line that runs the tests")
	}
	err = j.goTest(ctx, ".", nil, "-count=1", pattern)
	c.mu.Lock()
	c.readme = j.out.Bytes()
	c.mu.Unlock()
	return err
}

// testPattern returns the packages that the test command of a page names, or "".
func testPattern(page []byte) string {
	line := regexp.MustCompile(`(?m)^go test (\S+)(?: +#.*)?$`).FindSubmatch(page)
	if line == nil {
		return ""
	}
	return string(line[1])
}

// tested returns the modules that have a step of their own, the slowest first.
func (c *ci) tested() []string {
	names := slices.Clone(slowest)
	for _, m := range c.work.Modules {
		if m.Dir != "." && m.Dir != "tools" && !slices.Contains(names, m.Dir) {
			names = append(names, m.Dir)
		}
	}
	return names
}

// module returns the step that tests a module. In the full run the proofs of stores come later,
// when nothing runs beside them.
func (c *ci) module(name string) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) error {
		args, err := c.skip(name)
		if err != nil {
			return err
		}
		if c.full && slices.Contains(c.names, "proofs") {
			args = []string{"-skip=" + proofs}
		}
		return c.testModule(ctx, j, name, args...)
	}
}

func (c *ci) testModule(ctx context.Context, j *job, name string, args ...string) error {
	how := modules[name]
	if !how.plain {
		args = append(args, "-race")
	}
	var env []string
	if !how.onDisk {
		env = inMemory()
	}
	return j.goTest(ctx, name, env, append(args, "-count=1", "./...")...)
}

// proofs proves two stores at a time: most of a proof is waiting for leases to end.
func (c *ci) proofs(ctx context.Context, j *job) error {
	var errs []error
	for _, name := range c.tested() {
		if !strings.HasPrefix(name, "distributed/") {
			continue
		}
		proves, err := c.having(ctx, j, name, `^func Test\w*`+proofs)
		if err != nil {
			return err
		}
		if len(proves) > 0 {
			errs = append(errs, c.testModule(ctx, j, name, "-p=1", "-run="+proofs))
		}
	}
	return errors.Join(errs...)
}

// allocations counts allocations, which the race detector changes.
func (c *ci) allocations(ctx context.Context, j *job) error {
	for _, name := range c.tested() {
		packages, err := c.having(ctx, j, name, `^func Test\w*Alloc`)
		if err != nil {
			return err
		}
		if len(packages) == 0 {
			continue
		}
		if err := j.goTest(ctx, name, nil, append([]string{"-count=1", "-run=Alloc"}, packages...)...); err != nil {
			return err
		}
	}
	return nil
}

// having returns the packages of a module whose tests have a line with the pattern.
func (c *ci) having(ctx context.Context, j *job, module, pattern string) ([]string, error) {
	listed, err := j.output(ctx, "go", "list", "-f", "{{.Dir}}", "./"+module+"/...")
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile("(?m)" + pattern)
	var packages []string
	for _, folder := range strings.Fields(listed) {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && line.Match(text)
		}) {
			packages = append(packages, folder)
		}
	}
	return packages, nil
}
