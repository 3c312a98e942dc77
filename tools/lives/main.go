// Lives simulates locks for as long as it is told to, and keeps account of it. It runs the tests of
// this repository that call leasetest.Simulate, again and again, in several processes.
//
//	go run ./tools/lives -for 1h -processes 2 -ledger lives.json
//	go run ./tools/lives -gate -ledger gate.json -page docs/guides/stores.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jucgo/locks/tools/internal/workspace"
)

const usage = `usage: lives [flags]

Lives runs all tests called TestLivesOf... and TestLivesWith..., each as lives full of faults and as lives of a
service (see leasetest.World), until its time is over. It adds the hours, acquisitions and faults of each world
to the ledger, a file, and prints the table, also if it is interrupted. What fails is written to a file of its
own, with its seed.

With -gate, lives lives once the lives of the gate, and keeps account of them in the same way. With -page too, it
fails if the table of the page has other hours.

`

// packages have the tests, below the root of the repository.
var packages = []string{
	"distributed/lease/leasetest", "distributed/caslock", "distributed/redislock", "distributed/redislock/redlock",
}

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "lives:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	duration  time.Duration
	processes int
	ledger    string
	findings  string
	run       *regexp.Regexp
	faults    time.Duration // simulated in each run
	service   time.Duration // the same, of a service
	gate      bool
	page      string
}

// job is one run of one test.
type job struct {
	binary, folder string
	pkg, test      string
	service        bool
	gate           bool // test is a pattern, whose tests live the lives of the gate
}

// gatePattern matches the tests of the gate that simulate.
const gatePattern = "^Test(Lives(Of|With)|AServiceLives|.*IsSimulated$)"

func command() error {
	var o options
	flag.DurationVar(&o.duration, "for", 10*time.Minute, "how long to go on; what has not ended by then is stopped")
	flag.IntVar(&o.processes, "processes", runtime.GOMAXPROCS(0), "how many tests run beside each other")
	flag.StringVar(&o.ledger, "ledger", "lives.json", "the file to add the sums to")
	flag.StringVar(&o.findings, "findings", ".", "the folder for the output of what fails")
	flag.DurationVar(&o.faults, "faults", 20*time.Minute, "how much time each world simulates in a run, 0 for none")
	flag.DurationVar(&o.service, "service", 200*time.Hour, "how much time each world simulates as a service in a run, 0 for none")
	flag.BoolVar(&o.gate, "gate", false, "live once the lives of the gate")
	flag.StringVar(&o.page, "page", "", "with -gate and a new ledger: the page whose hours of the gate have to be right")
	run := flag.String("run", "", "only the tests whose package and name match, such as redislock.*Fair")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	var err error
	if o.run, err = regexp.Compile(*run); err != nil {
		return err
	}
	if flag.NArg() > 0 || o.processes < 1 || o.faults <= 0 && o.service <= 0 || o.page != "" && !o.gate {
		return errors.New("it wants no arguments, positive numbers, and -page with -gate only: see lives -h")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	work, err := os.MkdirTemp("", "lives")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	jobs, err := o.build(ctx, work)
	if err != nil {
		return err
	}
	account, err := openAccount(o.ledger)
	if err != nil {
		return err
	}
	err = o.repeat(ctx, jobs, account)
	account.print(os.Stdout)
	if err == nil && o.page != "" {
		err = account.comparePage(o.page)
	}
	return err
}

// build compiles the packages, and returns all runs of one round.
func (o *options) build(ctx context.Context, work string) ([]job, error) {
	w, err := workspace.Open(".")
	if err != nil {
		return nil, err
	}
	var all []job
	packages := packages
	if o.gate {
		packages = append(packages[:len(packages):len(packages)], "examples/simulated")
	}
	for i, pkg := range packages {
		folder := filepath.Join(w.Folder, filepath.FromSlash(pkg))
		binary := filepath.Join(work, fmt.Sprintf("%d.test", i))
		compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
		compile.Dir = folder
		if out, err := compile.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, out)
		}
		if o.gate {
			all = append(all, job{binary: binary, folder: folder, pkg: pkg, test: gatePattern, gate: true})
			continue
		}
		list := exec.CommandContext(ctx, binary, "-test.list", "^TestLives(Of|With)")
		list.Dir = folder
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", pkg, err)
		}
		for test := range strings.FieldsSeq(string(out)) {
			if !strings.HasPrefix(test, "Test") || !o.run.MatchString(pkg+"."+test) {
				continue
			}
			for _, service := range []bool{false, true} {
				if service && o.service > 0 || !service && o.faults > 0 {
					all = append(all, job{binary: binary, folder: folder, pkg: pkg, test: test, service: service})
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no test matches")
	}
	return all, nil
}

// repeat runs the jobs in turn until ctx ends. A finding does not end it.
func (o *options) repeat(ctx context.Context, jobs []job, account *account) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan job)
	errs := make(chan error, o.processes)
	var running sync.WaitGroup
	for range o.processes {
		running.Go(func() {
			for j := range next {
				if err := o.live(ctx, j, account); err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	for i := 0; ctx.Err() == nil && !(o.gate && i == len(jobs)); i++ {
		select {
		case next <- jobs[i%len(jobs)]:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	close(errs)
	return <-errs
}

// live runs one job, and adds it to the account. The job is stopped when ctx ends. All lives that
// have ended by then count.
func (o *options) live(ctx context.Context, j job, account *account) error {
	args := []string{"-test.run", "^" + j.test + "$", "-test.v", "-test.timeout=24h", "-leasetest.simulate"}
	env := append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	switch {
	case j.gate:
		args = []string{"-test.run", j.test, "-test.v", "-test.timeout=24h"}
		env = append(env, "LOCKS_SEARCH=all")
	case j.service:
		args = append(args, o.service.String(), "-leasetest.service")
	default:
		args = append(args, o.faults.String())
	}
	cmd := exec.CommandContext(ctx, j.binary, args...)
	cmd.Dir, cmd.Env = j.folder, env
	out, failed := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		if ctx.Err() != nil { // it ended before the job began
			return nil
		}
		return failed
	}
	run := read(string(out), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if failed != nil && failures(run) == 0 {
		select {
		case <-ctx.Done(): // an interrupt ends the job too, and may do it first
			failed = nil
		case <-time.After(time.Second):
			if run[j.test] == nil {
				run[j.test] = new(sums)
			}
			run[j.test].Failures++
		}
	}
	if err := account.add(j, run); err != nil || failed == nil {
		return err
	}
	name := j.test
	if j.gate {
		name = filepath.Base(j.pkg)
	}
	f, err := os.CreateTemp(o.findings, name+"-*.txt")
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Printf("%s of %s fails: %s\n", j.test, j.pkg, f.Name())
	_, err = f.Write(out)
	return err
}
