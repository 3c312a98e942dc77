package explore

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Keep makes Run write the schedule of a finding to a file in folder/<name of the test>, and try
// the schedules that it finds there before all others. So a mistake that took long to find fails
// the next run at once, on other machines too if the file is committed. The usual folder is
// testdata/explore. Several calls of Run in one test need different folders.
//
// A file has the steps of its schedule. If the program has changed, the schedule may lead to other
// steps. Run then says so in the log, and goes on: the file can be removed. Keep writes nothing for
// a finding that [Expect] expects, nor for a replay.
func Keep(folder string) Option {
	return func(c *config) { c.keep = folder }
}

// kept is a schedule in a file.
type kept struct {
	path  string
	list  []deviation
	again bool // it may take several runs to show its finding
	horizon
	steps string
}

// The first line of a file begins with this, and the schedule is behind the rest of the line.
const keptHeader = "explore.Replay: "

// folderOf returns the folder for the schedules of a test.
func (c *config) folderOf(t *testing.T) string {
	name := regexp.MustCompile(`[^\w/-]`).ReplaceAllString(t.Name(), "_")
	return filepath.Join(c.keep, filepath.FromSlash(name))
}

// kept returns the schedules in the files of a test.
func (c *config) kept(t *testing.T) (list []kept, err error) {
	t.Helper()
	if c.keep == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(c.folderOf(t), "*.schedule"))
	if err != nil {
		return nil, fmt.Errorf("explore: Keep: %w", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("explore: Keep: %w", err)
		}
		first, steps, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
		schedule, ok := strings.CutPrefix(first, keptHeader)
		if !ok {
			return nil, fmt.Errorf("explore: Keep: %s does not begin with %q", path, keptHeader)
		}
		k := kept{path: path, steps: steps}
		if k.list, k.again, k.horizon, err = parse(schedule); err != nil {
			return nil, fmt.Errorf("explore: Keep: %s: %w", path, err)
		}
		list = append(list, k)
	}
	return list, nil
}

// tryKept runs the schedules in the files of a test, and reports whether one has a finding.
func (r *result) tryKept(t *testing.T, c *config, f func(*X)) (found bool) {
	t.Helper()
	var all []kept
	if all, r.err = c.kept(t); r.err != nil {
		return true
	}
	for _, k := range all {
		with := *c
		with.horizon = k.horizon
		elsewhere := false
		times := 1
		if k.again {
			times = mostReplays
		}
		for range times {
			r.schedules++
			x := execute(t, &with, f, &guided{list: k.list}, true)
			if r.err = x.hangs; r.err != nil {
				return true
			}
			if x.finding != nil {
				r.from, r.horizon = k.path, k.horizon
				r.found(t, &with, f, x)
				return true
			}
			elsewhere = elsewhere || x.stepsText() != k.steps
		}
		if elsewhere && !k.again {
			r.elsewhere = append(r.elsewhere, k.path)
		}
	}
	return false
}

// keep writes the schedule of a finding to a file of the test.
func (r *result) keep(t *testing.T, c *config) error {
	t.Helper()
	if c.keep == "" || c.replays || r.from != "" || r.finding == nil || r.finding.Kind == c.expect {
		return nil
	}
	folder, text := c.folderOf(t), keptHeader+r.replay()+"\n"+r.run.stepsText()
	h := fnv.New64a()
	h.Write([]byte(text))
	name := fmt.Sprintf("%s-%016x.schedule", strings.ReplaceAll(string(r.finding.Kind), " ", "-"), h.Sum64())
	err := os.MkdirAll(folder, 0o777)
	if err == nil {
		r.to = filepath.Join(folder, name)
		err = os.WriteFile(r.to, []byte(text), 0o666)
	}
	if err != nil {
		r.to = ""
		return fmt.Errorf("explore: Keep: %w", err)
	}
	return nil
}

// address is how keys and names show a pointer, whose value differs from run to run.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// stepsText returns the steps of a run without the lines of the program: a line that moves changes
// no schedule.
func (x *X) stepsText() string {
	var b strings.Builder
	for _, e := range x.events {
		if e.time {
			b.WriteString("(time passes)\n")
			continue
		}
		e.pcs = nil
		b.WriteString(address.ReplaceAllString(x.title(x.list[e.who])+": "+e.String(), "0x") + "\n")
	}
	return b.String()
}
