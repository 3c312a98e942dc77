package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/report"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

// The tests expect English words, whatever the environment says.
func TestMain(m *testing.M) {
	_ = os.Setenv("LC_ALL", "C") // It fails for names that are none.
	goleak.VerifyTestMain(m)
}

// called runs the command.
func called(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), scenarios.Course, args, &out, &err)
	return code, out.String(), err.String()
}

func TestAQuickRunWritesPageAndData(t *testing.T) {
	dir := t.TempDir()
	page, data := filepath.Join(dir, "page.html"), filepath.Join(dir, "data.json")
	start := time.Now()
	code, stdout, stderr := called(t, "-quick", "-o", page, "-json", data, "-seed", "7")
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Less(t, time.Since(start), 5*time.Minute, "some seconds, on a machine that does nothing else")
	for i, s := range scenarios.Course.All() {
		require.Regexp(t, "(?m)^(ok  |OPEN)  "+s.Name+" ", stdout)
		require.Contains(t, stderr, s.Title.EN, "progress tells of number %d", i)
	}
	require.Contains(t, stdout, page)

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	wellFormed(t, string(text))
	selfContained(t, string(text))
	for _, s := range scenarios.Course.All() {
		require.Regexp(t, `<article id="`+s.Name+`" class="scenario (held|open)">`, string(text))
	}

	text, err = os.ReadFile(data)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r report.Report
	require.NoError(t, d.Decode(&r))
	require.Equal(t, report.Schema, r.Schema)
	require.True(t, r.OK)
	require.True(t, r.Quick)
	require.EqualValues(t, 7, r.Seed)
	require.Len(t, r.Scenarios, len(scenarios.Course.All()))

	info, err := os.Stat(page)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary files are left")
}

// wellFormed checks that every element is closed where it must be.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	require.True(t, strings.HasPrefix(page, "<!DOCTYPE html>"))
	page = regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(page, "")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "id" {
					require.False(t, ids[a.Value], "two elements are %q", a.Value)
					ids[a.Value] = true
				}
			}
		}
	}
	links := regexp.MustCompile(`(?:href="|aria-labelledby="|url\()#?([\w -]+)["\)]`)
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		for _, id := range strings.Fields(link[1]) {
			require.True(t, ids[id], "there is no %q", id)
		}
	}
	require.NotContains(t, page, "ZgotmplZ", "the template refused a value")
	require.NotContains(t, page, "NaN")
}

func selfContained(t *testing.T, page string) {
	t.Helper()
	for _, loads := range []string{`src="`, `@import`, `<link rel="stylesheet"`, `http://`, `https://`} {
		require.NotContains(t, page, loads)
	}
}

func TestNamedScenariosAreDrawnInTheTerminal(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := called(t, "run", "race", "-quick", "reentrancy", "race", "-o", page)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "2 of 2 scenarios")
	require.Regexp(t, `(Ann|Bob) +·*░+█+`, stdout) // the one that comes second
	for line := range strings.Lines(strings.ReplaceAll(stdout, page, "")) {
		require.LessOrEqual(t, lab.Columns(strings.TrimSpace(line)), 80)
	}
}

func TestDataGoToStandardOutputAlone(t *testing.T) {
	code, stdout, stderr := called(t, "run", "aba", "-quick", "-json", "-", "-o",
		filepath.Join(t.TempDir(), "page.html"))
	require.Equal(t, exitOK, code, stderr)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Contains(t, stderr, "1 of 1 scenarios")
}

func TestListAndHelp(t *testing.T) {
	code, stdout, stderr := called(t, "list")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)
	for _, s := range scenarios.Course.All() {
		require.Contains(t, stdout, s.Name)
		require.Contains(t, stdout, s.Question.EN)
	}
	code, stdout, stderr = called(t, "-h")
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr)
	for _, want := range []string{"-quick", "-seed", "-json", "-o FILE", "list", "docs DIR"} {
		require.Contains(t, stdout, want)
	}
}

func TestWrongCallsAreToldInOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"nonsense":          `no command "nonsense"`,
		"race":              "did you mean: run race",
		"run nonsense":      `no scenario "nonsense"; there are race, `,
		"run race nonsense": `no scenario "nonsense"`,
		"-nonsense":         "-nonsense",
		"-seed x":           "seed",
		"list race":         "list takes no arguments",
		"docs":              "docs needs one directory",
		"docs a b":          "docs needs one directory",
		"-o=":               "-o needs the name of a file",
	} {
		t.Run(args, func(t *testing.T) {
			code, stdout, stderr := called(t, strings.Fields(args)...)
			require.Equal(t, exitUsage, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, want)
			require.Equal(t, 2, strings.Count(stderr, "\n"), "the error and a hint: %s", stderr)
		})
	}
}

func TestUnwritablePathsAreReportedBeforeAnythingRuns(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing", "page.html")
	good := filepath.Join(dir, "page.html")
	for name, args := range map[string][]string{
		"no such directory": {"-o", missing},
		"a directory":       {"-o", dir},
		"data":              {"-o", good, "-json", missing},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := called(t, args...)
			require.Equal(t, exitFailed, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "cannot be written")
			require.NotContains(t, stderr, "[1/", "nothing was run")
			require.NoFileExists(t, good)
		})
	}
	code, _, stderr := called(t, "docs", filepath.Join(dir, "page.html", "x"))
	require.Equal(t, exitOK, code, stderr)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	code, _, stderr = called(t, "docs", filepath.Join(dir, "file"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "writing the chapters")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAnUnwritableSummaryIsAFailure(t *testing.T) {
	var stderr bytes.Buffer
	page := filepath.Join(t.TempDir(), "page.html")
	require.Equal(t, exitFailed, run(t.Context(), scenarios.Course,
		[]string{"run", "aba", "-quick", "-o", page}, full{}, &stderr))
	require.Contains(t, stderr.String(), "no space left")
	require.Equal(t, exitFailed, run(t.Context(), scenarios.Course, []string{"list"}, full{}, &stderr))
}

func TestAnInterruptedRunLeavesTheOldPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(page, []byte("old"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(30*time.Millisecond, cancel).Stop()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, scenarios.Course, []string{"-o", page}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "interrupted")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestAContradictedScenarioIsRedAndFails(t *testing.T) {
	s := *scenarios.Course.All()[0]
	s.Found = lab.Text{}
	for name, broken := range map[string]func(context.Context, *lab.Lab) error{
		"check": func(_ context.Context, l *lab.Lab) error { l.Equal(1, 2, lab.Same("one is <two>")); return nil },
		"error": func(context.Context, *lab.Lab) error { return errors.New("it <broke>") },
		"panic": func(context.Context, *lab.Lab) error { panic("it <broke>") },
		"lane": func(_ context.Context, l *lab.Lab) error {
			tl := l.Timeline(lab.Same("t"), lab.Same("d"))
			tl.Go(lab.Same("Ann"), func(context.Context, *lab.Lane) error { return errors.New("it <broke>") })
			tl.Go(lab.Same("Bob"), func(ctx context.Context, _ *lab.Lane) error { <-ctx.Done(); return nil })
			tl.Wait()
			return nil
		},
		"hangs": func(ctx context.Context, l *lab.Lab) error {
			l.Until(lab.Same("pigs <fly>"), func() bool { return false })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Run = broken
			o := lab.Options{Limit: 50 * time.Millisecond}
			r := report.New(scenarios.Course, o)
			r.Add(lab.Run(t.Context(), &s, o))
			require.False(t, r.OK)
			var page, text bytes.Buffer
			require.NoError(t, r.HTML(&page))
			wellFormed(t, page.String())
			assert.Contains(t, page.String(), `class="scenario failed"`)
			verdict, sign := "Not observed as taught", "FAIL"
			if name == "hangs" {
				verdict, sign = "Ran out of time", "TIME"
			}
			assert.Contains(t, page.String(), verdict)
			assert.Contains(t, page.String(), "0 of 1")
			require.NoError(t, report.Text(&text, r.Scenarios[0], lab.English, false))
			assert.Contains(t, text.String(), sign)
			assert.Regexp(t, "<two>|<broke>|<fly>", text.String())
		})
	}
}

func TestTheDocumentationIsUpToDate(t *testing.T) {
	docs, err := report.Docs(scenarios.Course)
	require.NoError(t, err)
	for name, want := range docs {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", filepath.FromSlash(name)))
		require.NoError(t, err, "run: go run ./cmd/locklab docs docs")
		require.Equal(t, want, string(got), "%s; run: go run ./cmd/locklab docs docs", name)
	}
	require.NotContains(t, strings.Join(values(docs), ""), "{{", "there are no figures in the chapters")
}

func values(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

func FuzzCommandLinesAreUnderstoodOrRefused(f *testing.F) {
	for _, line := range []string{"", "list", "-h", "run race aba -quick", "docs x",
		"-seed 7 -o a.html -json -", "-seed=-1", "run --", "-- run", "-o", "run -x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := parse(scenarios.Course, lab.English, strings.Fields(line), io.Discard)
		if err != nil {
			var usage usageError
			require.True(t, errors.As(err, &usage) || errors.Is(err, flag.ErrHelp), "%v", err)
			return
		}
		require.Contains(t, []string{"run", "list", "docs"}, s.command)
		require.NotEmpty(t, s.html)
		require.Equal(t, s.command == "run", len(s.scenarios) > 0)
		require.Equal(t, s.command == "docs", s.dir != "")
	})
}
