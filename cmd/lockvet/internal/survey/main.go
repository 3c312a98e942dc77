// Command survey runs lockvet over modules of others at fixed versions, and counts its reports:
//
//	go run ./internal/survey testdata/unchosen.txt # in cmd/lockvet
//
// A line of the list has a module and its version, or a verdict: real, harmless or false, the
// place, the check, and the reason. The program prints each report without a verdict, and each
// verdict without a report. It downloads the modules, and runs lockvet in each of them as in a
// module under work.
//
// With -beside, it also runs the standard checks of go vet, and no check at all, over each module.
// These load and type-check what lockvet does, in the same way. So the processor time of lockvet
// compares with theirs on a machine of any speed.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	runAsChecks()
	beside := flag.Bool("beside", false, "measure the standard checks of go vet, and no checks, in the same way")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "survey: want one list of modules")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *beside); err != nil {
		fmt.Fprintln(os.Stderr, "survey:", err)
		os.Exit(1)
	}
}

// A list is the content of the file.
type list struct {
	modules  []string          // "path@version"
	verdicts map[string]string // by "module/file:line check"
}

func parse(text string) (l list, err error) {
	l.verdicts = map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case len(fields) == 2 && strings.HasPrefix(fields[1], "v"):
			l.modules = append(l.modules, fields[0]+"@"+fields[1])
		case len(fields) > 3 && slices.Contains([]string{"real", "harmless", "false"}, fields[0]):
			l.verdicts[fields[1]+" "+strings.TrimSuffix(fields[2], ":")] = fields[0]
		default:
			return l, fmt.Errorf("want a module and its version, or a verdict, a place, a check and a reason: %s", line)
		}
	}
	return l, nil
}

// A count is the result of a survey of one module.
type count struct {
	lines    int
	reports  []string // "module/file:line check"
	messages []string
	user     time.Duration
	memory   int64
	others   map[string]time.Duration // the processor time of other checks
}

func run(name string, beside bool) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	l, err := parse(string(text))
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "survey-*")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	tool := filepath.Join(folder, "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("build lockvet: %w\n%s", err, out)
	}
	total, seen, judged := count{others: map[string]time.Duration{}}, map[string]bool{}, map[string]int{}
	for _, module := range l.modules {
		c, err := survey(tool, module, folder, beside)
		if err != nil {
			fmt.Printf("%-60s %v\n", module, err)
			continue
		}
		fmt.Printf("%-60s %8d lines, %2d reports, %6.1f s of processor time, %5d MB\n",
			module, c.lines, len(c.reports), c.user.Seconds(), c.memory>>20)
		for checks, user := range c.others {
			total.others[checks] += user
		}
		for i, r := range c.reports {
			seen[r] = true
			if v := l.verdicts[r]; v != "" {
				judged[v]++
			} else {
				judged["without a verdict"]++
				fmt.Println("  without a verdict:", r, c.messages[i])
			}
		}
		total.lines, total.user = total.lines+c.lines, total.user+c.user
		total.reports = append(total.reports, c.reports...)
		total.memory = max(total.memory, c.memory)
	}
	for r := range l.verdicts {
		if !seen[r] {
			fmt.Println("  no such report:", r)
		}
	}
	fmt.Printf("%d modules, %d lines, %.1f s for 100,000 lines, at most %d MB: %d reports", len(l.modules), total.lines,
		total.user.Seconds()*1e5/float64(max(total.lines, 1)), total.memory>>20, len(total.reports))
	for _, v := range []string{"real", "harmless", "false", "without a verdict"} {
		fmt.Printf(", %d %s", judged[v], v)
	}
	fmt.Println()
	for _, checks := range slices.Sorted(maps.Keys(total.others)) {
		fmt.Printf("%s: %.1f s for 100,000 lines\n", checks, total.others[checks].Seconds()*1e5/float64(max(total.lines, 1)))
	}
	return nil
}

var place = regexp.MustCompile(`^(.+?):(\d+):\d+: (.*) \((\w+)\)$`)

// toFolder matches a line of go.mod that replaces a module by a folder, which a downloaded module
// lacks.
var toFolder = regexp.MustCompile(`(?m)^.*=>\s*\.\.?/.*$`)

// survey runs lockvet in one module. Copies of go.mod and go.sum, in folder, get what these lack.
func survey(tool, module, folder string, beside bool) (c count, err error) {
	var at struct{ Dir, Error string }
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if jsonErr := json.Unmarshal(out, &at); err != nil || jsonErr != nil {
		return c, fmt.Errorf("download: %w: %s", errors.Join(err, jsonErr), at.Error)
	}
	if c.lines, err = linesOf(at.Dir); err != nil {
		return c, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(at.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("copy %s: %w", name, err)
		}
		text = toFolder.ReplaceAll(text, nil)
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return c, fmt.Errorf("copy %s: %w", name, err)
		}
	}
	command := func(tool string, variables ...string) *exec.Cmd {
		cmd := exec.Command(tool, "-test=false", "./...")
		cmd.Dir = at.Dir
		flags := "GOFLAGS=-mod=mod -modfile=" + filepath.Join(folder, "go.mod")
		cmd.Env = append(os.Environ(), "GOWORK=off", flags, "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		cmd.Env = append(cmd.Env, variables...)
		return cmd
	}
	if beside {
		if c.others, err = measureOthers(command); err != nil {
			return c, err
		}
	}
	cmd := command(tool)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	c.user = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.memory = memoryOf(cmd.ProcessState)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		return c, fmt.Errorf("lockvet: %w: %s", err, said.String()[:min(said.Len(), 300)])
	}
	path, _, _ := strings.Cut(module, "@")
	for line := range strings.Lines(said.String()) {
		if m := place.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			file, err := filepath.Rel(at.Dir, m[1])
			if err != nil {
				file = m[1]
			}
			c.reports = append(c.reports, path+"/"+filepath.ToSlash(file)+":"+m[2]+" "+m[4])
			c.messages = append(c.messages, m[3])
		}
	}
	return c, nil
}

// linesOf counts the lines of Go in a module, without its tests.
func linesOf(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		n += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count lines: %w", err)
	}
	return n, nil
}
