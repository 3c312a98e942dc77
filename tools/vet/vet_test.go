package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/config"
	"honnef.co/go/tools/unused"

	"github.com/jucgo/locks/tools/internal/workspace"
)

func TestHasTheAnalyzersOfGoVet(t *testing.T) {
	help, err := exec.Command("go", "tool", "vet", "help").Output()
	must(t, err)
	_, list, _ := strings.Cut(string(help), "Registered analyzers:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want, got []string
	for line := range strings.Lines(list) {
		want = append(want, strings.Fields(line)[0])
	}
	for _, a := range goVet {
		got = append(got, a.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the analyzers are %v, those of go vet are %v", got, want)
	}
}

func TestHasTheChecksOfStaticcheck(t *testing.T) {
	list, err := exec.Command(staticcheckOriginal, "-list-checks").Output()
	must(t, err)
	var want []string
	for line := range strings.Lines(string(list)) {
		want = append(want, strings.Fields(line)[0])
	}
	got := []string{unused.Analyzer.Analyzer.Name}
	for _, a := range staticcheckAnalyzers() {
		got = append(got, a.Analyzer.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the checks are %v, those of staticcheck are %v", got, want)
	}
}

func TestFindsEachKindOfMistake(t *testing.T) {
	var got []string
	for _, f := range goVetWith(t, vet, planted) {
		got = append(got, f.file+":"+f.line+" "+f.check)
	}
	var want []string
	files, err := filepath.Glob(filepath.Join(planted, "*.go"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			_, checks, _ := strings.Cut(line, "// want ")
			for _, check := range strings.Fields(checks) {
				want = append(want, fmt.Sprintf("%s:%d %s", filepath.Base(file), number, check))
			}
		}
	}
	compare(t, got, want)
}

func TestFindsWhatTheOriginalsFind(t *testing.T) {
	text := func(all []finding, withCheck bool) (lines []string) {
		for _, f := range all {
			line := f.file + ":" + f.line + ": " + f.message
			if withCheck {
				line += " " + f.check
			}
			lines = append(lines, line)
		}
		return lines
	}
	var got, want []string
	for _, f := range goVetWith(t, vet, planted) {
		if f.check == copies.Name {
			continue
		}
		ofGoVet := slices.ContainsFunc(goVet, func(a *analysis.Analyzer) bool { return a.Name == f.check })
		got = append(got, text([]finding{f}, !ofGoVet)...)
	}
	want = append(want, text(goVetWith(t, "", planted), false)...)
	want = append(want, text(goVetWith(t, lockvetOriginal, planted), true)...)
	want = append(want, text(findings(t, planted, staticcheckOriginal, "./..."), true)...)
	compare(t, got, want)
}

func TestAChangeOfTheConfigurationIsSeen(t *testing.T) {
	folder := t.TempDir()
	must(t, os.CopyFS(folder, os.DirFS(planted)))
	checks := func() (found []string) {
		for _, f := range goVetWith(t, vet, folder) {
			found = append(found, f.check)
		}
		return found
	}
	if found := checks(); slices.Contains(found, "SA4000") || !slices.Contains(found, "ST1005") {
		t.Errorf("with the first configuration: %v", found)
	}
	must(t, os.WriteFile(filepath.Join(folder, config.ConfigName), []byte(`checks = ["inherit", "-ST*"]`), 0o644))
	if found := checks(); !slices.Contains(found, "SA4000") || slices.Contains(found, "ST1005") {
		t.Errorf("with the second configuration: %v", found)
	}
}

func TestTheRepositoryHasOneConfiguration(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	var found []string
	for _, m := range w.Modules {
		must(t, filepath.WalkDir(m.Folder, func(file string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() && (e.Name() == "testdata" || e.Name() == ".git") {
				return filepath.SkipDir
			}
			if e.Name() == config.ConfigName && !slices.Contains(found, file) {
				found = append(found, file)
			}
			return err
		}))
	}
	if want := filepath.Join(w.Folder, config.ConfigName); !slices.Equal(found, []string{want}) {
		t.Errorf("the key of a cached result has %s only, the repository has %v", want, found)
	}
}

func TestLockvetSkipsTheScenariosOfTheLab(t *testing.T) {
	for path, want := range map[string]bool{
		"cmd/locklab":                    true,
		"cmd/locklab_test":               true,
		"cmd/locklab/internal/scenarios": true,
		"cmd/locklab/distributed":        false,
		"cmd/lockvet":                    false,
		"fair":                           false,
	} {
		if got := showsMistakes(workspace.Root + "/" + path); got != want {
			t.Errorf("%s shows mistakes: %t", path, got)
		}
	}
}

// planted is a module with mistakes. Each comment "// want" names the checks that find one there.
const planted = "testdata/planted"

// The programs that TestMain builds.
var vet, staticcheckOriginal, lockvetOriginal string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "vet")
	if err != nil {
		log.Fatal(err)
	}
	vet = filepath.Join(folder, "vet")
	staticcheckOriginal, lockvetOriginal = filepath.Join(folder, "staticcheck"), filepath.Join(folder, "lockvet")
	build := exec.Command("go", "build", "-o", folder+string(filepath.Separator),
		".", "honnef.co/go/tools/cmd/staticcheck", workspace.Root+"/cmd/lockvet")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("%v: %v\n%s", build, err, out)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// A finding is one line that a program prints. A name of a check in parentheses at its end is not
// in the message. The line may have the folder of another copy of the module, since go vet keeps
// results in the cache, and with -trimpath the key of a result has no folder.
type finding struct{ file, line, message, check string }

// goVetWith returns the findings of go vet in a folder, with tool in place of its own if there is
// one.
func goVetWith(t *testing.T, tool, folder string) []finding {
	t.Helper()
	args := []string{"vet"}
	if tool != "" {
		args = append(args, "-vettool="+tool)
	}
	return findings(t, folder, "go", append(args, "./...")...)
}

// findings returns the findings that a program prints in a folder.
func findings(t *testing.T, folder, program string, args ...string) []finding {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD=")
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); !exited {
		t.Fatalf("%s %v: %v, and mistakes are planted\n%s", program, args, err, out)
	}
	var found []finding
	for line := range strings.Lines(string(out)) {
		m := regexp.MustCompile(`^(?:.*?[/\\])?(\w+\.go):(\d+):\d+: (\S.*?)(?: \((\w+)\))?\n$`).FindStringSubmatch(line)
		if m != nil {
			found = append(found, finding{m[1], m[2], m[3], m[4]})
		} else if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: ") && !strings.Contains(line, ": \t") {
			t.Errorf("%s printed %q", program, line)
		}
	}
	return found
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("found and not wanted: %s", g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("wanted and not found: %s", w)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
