package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jucgo/locks/internal/bench"
)

// projects are the sources of the programs that measure locks of other languages. They are part of
// the command, so that it finds them wherever it runs.
//
//go:embed jdk/pom.xml jdk/src parking_lot/Cargo.toml parking_lot/src
var projects embed.FS

// program measures locks of another language.
type program struct {
	name       string   // of the locks
	dir        string   // its folder in projects
	tools      []string // that build and run it
	build      []string
	benchmarks []benchmark
	// measure runs the program in the folder where it was built. It returns the costs of each
	// round, and the versions of the measured software.
	measure func(ctx context.Context, dir string, names []string, rounds int, slot time.Duration,
	) (costs map[string][]float64, versions string, err error)
}

// benchmark is a subject of a workload by the name that the program has for it.
type benchmark struct{ name, workload, subject string }

func programs() []program {
	return []program{{
		name: "the JDK", dir: "jdk", tools: []string{"java", "mvn"},
		build:   []string{"mvn", "-q", "-B", "-Dstyle.color=never", "package", "dependency:copy-dependencies"},
		measure: measureJDK,
		benchmarks: []benchmark{
			{"uncontended", bench.Uncontended, "JDK ReentrantLock"},
			{"uncontendedFair", bench.Uncontended, "JDK ReentrantLock-fair"},
			{"uncontendedReadWrite", bench.Uncontended, "JDK ReentrantReadWriteLock"},
			{"uncontendedStamped", bench.Uncontended, "JDK StampedLock"},
			{"reentry", bench.Reentry, "JDK ReentrantLock"},
			{"read", bench.ReadPair, "JDK ReentrantReadWriteLock.R"},
			{"readStamped", bench.ReadPair, "JDK StampedLock.R"},
			{"readOptimistic", bench.ReadPair, "JDK StampedLock.Optimistic"},
			{"reentrantRead", bench.ReentrantRead, "JDK ReentrantReadWriteLock.R"},
			{"twoReaders", bench.TwoReaders, "JDK ReentrantReadWriteLock.R"},
			{"twoReadersStamped", bench.TwoReaders, "JDK StampedLock.R"},
			{"twoReadersOptimistic", bench.TwoReaders, "JDK StampedLock.Optimistic"},
			{"turns", bench.Turns, "JDK ReentrantReadWriteLock.R"},
			{"turnsStamped", bench.Turns, "JDK StampedLock.R"},
			{"tryLock", bench.Tries, "JDK ReentrantLock"},
			{"tryLockReadWrite", bench.Tries, "JDK ReentrantReadWriteLock"},
			{"contended2", bench.Contended2, "JDK ReentrantLock"},
			{"fifo8", bench.FIFO8, "JDK ReentrantLock-fair"},
			{"fifo8Work", bench.FIFO8Work, "JDK ReentrantLock-fair"},
			{"work64", bench.Goroutines, "JDK ReentrantLock"},
			{"work64Fair", bench.Goroutines, "JDK ReentrantLock-fair"},
			{"pingPong", bench.PingPong, "JDK ReentrantLock"},
			{"compareAndSet", bench.CompareAndSwap, "JDK AtomicStampedReference"},
		},
	}, {
		name: "parking_lot", dir: "parking_lot", tools: []string{"cargo", "rustc"},
		build:   []string{"cargo", "build", "--release", "--quiet"},
		measure: measureParkingLot,
		benchmarks: []benchmark{
			{"uncontended", bench.Uncontended, "parking_lot::Mutex"},
			{"uncontended_fair", bench.Uncontended, "parking_lot::FairMutex"},
			{"uncontended_reentrant", bench.Uncontended, "parking_lot::ReentrantMutex"},
			{"uncontended_rwlock", bench.Uncontended, "parking_lot::RwLock"},
			{"reentry", bench.Reentry, "parking_lot::ReentrantMutex"},
			{"read", bench.ReadPair, "parking_lot::RwLock.R"},
			{"reentrant_read", bench.ReentrantRead, "parking_lot::RwLock.R"},
			{"two_readers", bench.TwoReaders, "parking_lot::RwLock.R"},
			{"turns", bench.Turns, "parking_lot::RwLock.R"},
			{"try_lock", bench.Tries, "parking_lot::Mutex"},
			{"try_lock_rwlock", bench.Tries, "parking_lot::RwLock"},
			{"contended2", bench.Contended2, "parking_lot::Mutex"},
			{"fifo8", bench.FIFO8, "parking_lot::FairMutex"},
			{"fifo8_work", bench.FIFO8Work, "parking_lot::FairMutex"},
			{"work64", bench.Goroutines, "parking_lot::Mutex"},
			{"work64_fair", bench.Goroutines, "parking_lot::FairMutex"},
			{"ping_pong", bench.PingPong, "parking_lot::Condvar"},
		},
	}}
}

// installed returns the programs whose tools are installed. It says of the others what is missing.
func installed(stderr io.Writer) (ps []program) {
	for _, p := range programs() {
		missing := slices.DeleteFunc(slices.Clone(p.tools), func(tool string) bool {
			_, err := exec.LookPath(tool)
			return err == nil
		})
		if len(missing) > 0 {
			verb := "is"
			if len(missing) > 1 {
				verb = "are"
			}
			fmt.Fprintf(stderr, "compare: %s is left out: %s %s not installed\n",
				p.name, strings.Join(missing, " and "), verb)
			continue
		}
		ps = append(ps, p)
	}
	return ps
}

// addSubjects adds the subjects of ps to ws. They have no New, since this process cannot run them.
func addSubjects(ws []bench.Workload, ps []program) {
	for _, p := range ps {
		for _, b := range p.benchmarks {
			i := slices.IndexFunc(ws, func(w bench.Workload) bool { return w.Name == b.workload })
			ws[i].Subjects = append(ws[i].Subjects, bench.Subject{Name: b.subject})
		}
	}
}

// chosenOf returns the programs that are needed, each with the benchmarks that were chosen.
func chosenOf(ps []program, chosen []bench.Workload) (needed []program) {
	for _, p := range ps {
		p.benchmarks = slices.DeleteFunc(p.benchmarks, func(b benchmark) bool {
			return !slices.ContainsFunc(chosen, func(w bench.Workload) bool {
				return w.Name == b.workload && w.Has(b.subject)
			})
		})
		if len(p.benchmarks) > 0 {
			needed = append(needed, p)
		}
	}
	return needed
}

// measureWith measures the workloads here, and then has the programs measure theirs. It builds
// the programs first, since most failures happen there.
func measureWith(ctx context.Context, ps []program, ws []bench.Workload, s settings, progress io.Writer,
) (r Report, err error) {
	if len(ps) == 0 {
		return measure(ctx, ws, s.rounds, s.slot, progress)
	}
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	say := func(format string, args ...any) {
		fmt.Fprintf(progress, "\r%-70s\r%s", "", fmt.Sprintf(format, args...))
	}
	defer say("")
	for _, p := range ps {
		say("building the benchmarks of %s", p.name)
		if err := p.make(ctx, dir); err != nil {
			return r, fmt.Errorf("build the benchmarks of %s: %w", p.name, err)
		}
	}
	if r, err = measure(ctx, ws, s.rounds, s.slot, progress); err != nil {
		return r, err
	}
	for _, p := range ps {
		say("%d benchmarks of %s", len(p.benchmarks), p.name)
		if err := p.addTo(ctx, &r, filepath.Join(dir, p.dir), s); err != nil {
			return r, fmt.Errorf("measure %s: %w", p.name, err)
		}
	}
	return r, nil
}

// make writes the sources of p to a folder of its own below dir, and builds it there.
func (p *program) make(ctx context.Context, dir string) error {
	sources, err := fs.Sub(projects, p.dir)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, p.dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return err
	}
	_, err = call(ctx, dir, p.build[0], p.build[1:]...)
	return err
}

// addTo runs p, and adds its figures to r.
func (p *program) addTo(ctx context.Context, r *Report, dir string, s settings) error {
	names := make([]string, len(p.benchmarks))
	for i, b := range p.benchmarks {
		names[i] = b.name
	}
	start, before := time.Now(), bench.TakeUsage()
	costs, versions, err := p.measure(ctx, dir, names, s.rounds, s.slot)
	if err != nil {
		return err
	}
	r.Others = append(r.Others, Other{
		Versions: versions, Seconds: time.Since(start).Seconds(), Busy: bench.TakeUsage().Since(before),
	})
	for _, b := range p.benchmarks {
		rounds := costs[b.name]
		if len(rounds) != s.rounds {
			return fmt.Errorf("%s has %d rounds, want %d", b.name, len(rounds), s.rounds)
		}
		f := Figures{Name: b.subject, Rounds: rounds}
		f.Low, f.Median, f.High = quartiles(rounds)
		i := slices.IndexFunc(r.Workloads, func(m Measured) bool { return m.Name == b.workload })
		m := &r.Workloads[i]
		m.Subjects = append(m.Subjects, f)
		slices.SortStableFunc(m.Subjects, func(a, b Figures) int { return cmp.Compare(a.Median, b.Median) })
	}
	return nil
}

// The warm-up and the iteration that JMH needs to compile the code and to start and stop its
// threads.
const (
	jmhWarmUp    = 5
	jmhWarmUpFor = 200 * time.Millisecond
	jmhIteration = 50 * time.Millisecond // at least
)

// measureJDK makes each round an iteration of JMH.
func measureJDK(ctx context.Context, dir string, names []string, rounds int, slot time.Duration,
) (map[string][]float64, string, error) {
	results := filepath.Join(dir, "results.json")
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
	// JMH keeps a lock in the folder for temporary files, so that the lock of another user keeps
	// JMH out.
	_, err := call(ctx, dir, "java", "-Djava.io.tmpdir="+dir,
		"-cp", filepath.Join("target", "jars", "*"), "org.openjdk.jmh.Main",
		"-f", "1", "-foe", "true", "-wi", strconv.Itoa(jmhWarmUp), "-w", milliseconds(jmhWarmUpFor),
		"-i", strconv.Itoa(rounds), "-r", milliseconds(max(slot, jmhIteration)),
		"-rf", "json", "-rff", results, `^compare\.JDK\.(`+strings.Join(names, "|")+")$")
	if err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(results)
	if err != nil {
		return nil, "", err
	}
	return parseJMH(text)
}

// parseJMH reads the results of JMH, which are operations by time.
func parseJMH(text []byte) (costs map[string][]float64, versions string, err error) {
	var results []struct {
		JMHVersion, JDKVersion, VMName, Benchmark string
		PrimaryMetric                             struct {
			ScoreUnit string
			RawData   [][]float64 // by fork and iteration
		}
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, "", fmt.Errorf("results of JMH: %w", err)
	}
	costs = make(map[string][]float64)
	for _, r := range results {
		if unit := r.PrimaryMetric.ScoreUnit; unit != "ops/ns" {
			return nil, "", fmt.Errorf("results of JMH: %s is in %q, want ops/ns", r.Benchmark, unit)
		}
		versions = fmt.Sprintf("JDK %s (%s), JMH %s", r.JDKVersion, r.VMName, r.JMHVersion)
		name := r.Benchmark[strings.LastIndex(r.Benchmark, ".")+1:]
		for _, x := range slices.Concat(r.PrimaryMetric.RawData...) {
			if x <= 0 {
				return nil, "", fmt.Errorf("results of JMH: an iteration of %s did nothing", r.Benchmark)
			}
			costs[name] = append(costs[name], 1/x)
		}
	}
	return costs, versions, nil
}

func measureParkingLot(ctx context.Context, dir string, names []string, rounds int, slot time.Duration,
) (map[string][]float64, string, error) {
	text, err := call(ctx, dir, "cargo", append([]string{
		"run", "--release", "--quiet", "--", strconv.Itoa(rounds), strconv.FormatInt(int64(slot), 10),
	}, names...)...)
	if err != nil {
		return nil, "", err
	}
	costs := make(map[string][]float64)
	if err := json.Unmarshal(text, &costs); err != nil {
		return nil, "", fmt.Errorf("figures of parking_lot: %w", err)
	}
	rustc, err := call(ctx, dir, "rustc", "--version")
	if err != nil {
		return nil, "", err
	}
	compiler, _, _ := strings.Cut(string(rustc), " (")
	return costs, fmt.Sprintf("parking_lot %s, %s", parkingLotVersion(), strings.TrimSpace(compiler)), nil
}

// parkingLotVersion is the only version that Cargo.toml allows.
func parkingLotVersion() string {
	manifest, _ := projects.ReadFile("parking_lot/Cargo.toml")
	found := regexp.MustCompile(`(?m)^parking_lot = "=([^"]+)"`).FindSubmatch(manifest)
	if found == nil {
		return "of an unknown version"
	}
	return string(found[1])
}

// call runs a tool, and returns its output. The error has the line in which the tool names the
// problem. If ctx ends, the tool ends, with all processes that it started.
func call(ctx context.Context, dir, tool string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // for a process that outlives its tool, and has its output open
	killTogether(cmd)
	if err := cmd.Run(); err != nil {
		err = fmt.Errorf("%s: %w", tool, err)
		if line := complaint(stdout.String() + "\n" + stderr.String()); line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
		return nil, err
	}
	return stdout.Bytes(), nil
}

var (
	colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	// wrong matches the lines in which Maven, cargo, javac, rustc and Java's exceptions name a
	// problem. A line that ends with a colon is a headline.
	wrong = regexp.MustCompile(`^(\[?(?i:error)\b.*[^: ]|[\w.]+(Exception|Error): .+)$`)
)

// complaint returns the first line of an output that names a problem, or else the last line.
// Further such lines are mostly consequences, and advice follows them.
func complaint(output string) (line string) {
	for l := range strings.Lines(colors.ReplaceAllString(output, "")) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if line = l; wrong.MatchString(line) {
			break
		}
	}
	return line
}
