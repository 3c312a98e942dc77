//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	_ "github.com/jucgo/locks/distributed/open/all"
	"github.com/jucgo/locks/distributed/open/driver"
	safe "github.com/jucgo/locks/internal/terminal"
	"github.com/jucgo/locks/named"
)

// asProgram makes the test's binary act as the program.
const asProgram = "WITHLOCK_TEST_MAIN"

func TestMain(m *testing.M) {
	guardIfAsked()
	if os.Getenv(asProgram) != "" {
		os.Unsetenv(asProgram)
		if os.Getenv(asPatient) != "" {
			shortest = requestTimeout
		}
		if os.Getenv(asDoubtful) != "" {
			driver.Register(driver.Scheme{Name: "doubtful", Kinds: []string{"plain"}, Open: openDoubtful})
		}
		Main()
	}
	os.Unsetenv("WITHLOCK_STORE")
	os.Setenv("LC_ALL", "C") // the tests read English
	logging.Disable()        // of go-redis, whose servers come and go here
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("8") // they wait for processes and for leases
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.start.func1.1"))
}

// asDoubtful gives the program a store that never knows whether it is rid of all locks.
const asDoubtful = "WITHLOCK_TEST_DOUBTFUL"

func openDoubtful(_ context.Context, o *driver.Opening) error {
	o.Locker = named.New(locks.NonFair).Locker
	o.OnClose(func(context.Context) error { return errors.New("acquisitions in doubt: 1") })
	return nil
}

// here runs the program in this process.
func here(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(append([]string{"withlock"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestBadInputIsOneLineAndACode(t *testing.T) {
	dir := t.TempDir()
	store := "-store=file:" + filepath.Join(dir, "locks")
	database, long := "-store=sqlite:"+filepath.Join(dir, "locks.db"), strings.Repeat("n", 300)
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, `"jump" is no command`, []string{"jump"}},
		{exitUsage, `"runn" is no command`, []string{"runn", "-name", "it", "--", "true"}},
		{exitUsage, "a URL is no command", []string{"redis://u:secretpw@h/0", "ls"}},
		{exitUsage, "a URL is no command", []string{"run", "-name", "a", "redis://u:secretpw@h/0", "true"}},
		{exitUsage, "flags follow the command", []string{"-store=redis://u:secretpw@h/0", "ls"}},
		{exitUsage, "flags follow the command", []string{"--name", "a", "run", "--", "true"}},
		{exitUsage, `"gun" is no command`, []string{"gun", "-h"}},
		{exitUsage, "-colour", []string{"run", "-colour"}},
		{exitUsage, "no lock", []string{"run", store, "--", "true"}},
		{exitUsage, "no command", []string{"run", store, "-name", "a"}},
		{exitUsage, "no command", []string{"lead", store, "-name", "a", "--"}},
		{exitUsage, "no store", []string{"run", "-name", "a", "--", "true"}},
		{exitUsage, "-try or -wait", []string{"run", store, "-name", "a", "-try", "-wait", "1s", "--", "true"}},
		{exitUsage, "on-lost", []string{"run", store, "-name", "a", "-on-lost", "cry", "--", "true"}},
		{exitUsage, "ttl", []string{"run", store, "-name", "a", "-ttl", "0s", "--", "true"}},
		{exitUsage, "negative", []string{"run", store, "-name", "a", "-wait", "-1s", "--", "true"}},
		{exitUsage, "negative", []string{"run", store, "-name", "a", "-wait", "-1", "--", "true"}},
		{exitUsage, `"soon" for flag -wait: need a time such as 10`,
			[]string{"run", store, "-name", "a", "-wait", "soon", "--", "true"}},
		{exitUsage, "invalid URL", []string{"who", "-store", "gopher://u:secretpw@h", "a"}},
		{exitUsage, "Known are", []string{"who", "-store", "redis://u:secretpw@h/0?colour=red", "a"}},
		{exitUsage, "memory of one process", []string{"run", "-store", "mem:", "-name", "a", "--", "true"}},
		{exitUsage, "memory of one process", []string{"run", "-store", "MEM:", "-name", "a", "--", "true"}},
		{exitUsage, "one name", []string{"who", store}},
		{exitUsage, "one name", []string{"force", store, "-yes", "a", "b"}},
		{exitUsage, "-yes", []string{"force", store, "a"}},
		{exitUsage, "only its holder", []string{"force", store, "-yes", "a"}},
		{exitUsage, "one pattern", []string{"ls", store, "a", "b"}},
		{exitUsage, "pattern", []string{"ls", store, "[a"}},
		{exitUsage, "-every", []string{"watch", store, "-every", "0s"}},
		{exitUnreachable, "cannot be reached", []string{"who", "-store", "redis://u:secretpw@127.0.0.1:1/0", "a"}},
		{exitUnreachable, "cannot be reached", []string{"run", "-store", "file:" + plain, "-name", "a", "--", "true"}},
		{exitUsage, "300 bytes", []string{"run", database, "-name", long, "--", "true"}},
		{exitUsage, "300 bytes", []string{"run", database, "-name", long, "-try", "--", "true"}},
		{exitUsage, "300 bytes", []string{"lead", database, "-name", long, "--", "true"}},
		{exitUsage, "300 bytes", []string{"who", database, long}},
		{exitUsage, "need a shell", []string{"completion"}},
		{exitUsage, "need a shell", []string{"completion", "ksh"}},
		{exitNotRunnable, "permission denied", []string{"run", store, "-name", "a", "--", plain}},
		{exitNotRunnable, "is a directory", []string{"run", store, "-name", "a", "--", dir}},
		{exitNotRunnable, "is a directory", []string{"lead", store, "-name", "a", "--", dir}},
		{exitNotFound, "command not found", []string{"run", store, "-name", "a", "--", dir + "/no-such-command"}},
		{exitNotFound, "command not found", []string{"run", store, "-name", "a", "--", "no-such-command"}},
		{exitNotFound, "command not found", []string{"lead", store, "-name", "a", "--", "no-such-command"}},
	} {
		code, stdout, stderr := here(c.args...)
		require.Equal(t, c.code, code, "%q: %s", c.args, stderr)
		require.Empty(t, stdout, "%q", c.args)
		require.True(t, strings.HasPrefix(stderr, "withlock: "), "%q: %s", c.args, stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "%q: %s", c.args, stderr)
		require.Contains(t, stderr, c.says, "%q", c.args)
		require.NotContains(t, stderr, "secretpw", "%q", c.args)
	}
}

func TestTheTokenOfAnOuterLockIsRemoved(t *testing.T) {
	t.Setenv("LOCK_TOKEN", "41")
	store := "-store=file:" + t.TempDir()
	code, _, stderr := here("run", store, "-name", "a", "--", "sh", "-c", `[ -z "$LOCK_TOKEN" ]`)
	require.Zero(t, code, stderr)
}

func TestARunInsideItsOwnLockIsRefused(t *testing.T) {
	store := "-store=file:" + t.TempDir()
	inner := fmt.Sprintf("%s=1 exec '%s' run %s -name a -wait 1m -- true", asProgram, os.Args[0], store)
	for _, command := range []string{"run", "lead"} {
		code, _, stderr := here(command, store, "-name", "b", "--", "sh", "-c", inner)
		require.Zero(t, code, stderr)
	}
	code, _, _ := here("run", store, "-name", "a", "--", "sh", "-c", inner)
	require.Equal(t, exitUsage, code)
	t.Setenv("LOCK_NAME", "a")
	for _, command := range []string{"run", "lead"} {
		code, _, stderr := here(command, store, "-name", "a", "--", "true")
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, `under the lock "a" already`)
	}
}

func TestTheStoresURLIsInheritedOnRequestOnly(t *testing.T) {
	t.Setenv("WITHLOCK_STORE", "file:"+t.TempDir())
	look := []string{"--", "sh", "-c", `[ -z "$WITHLOCK_STORE" ]`}
	for _, command := range []string{"run", "lead"} {
		code, _, stderr := here(append([]string{command, "-name", "a"}, look...)...)
		require.Zero(t, code, stderr)
	}
	code, _, _ := here(append([]string{"run", "-name", "a", "-keep-store"}, look...)...)
	require.Equal(t, 1, code)
}

// full is an output without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAFullOutputIsNoWrongArgument(t *testing.T) {
	store := "-store=sqlite:" + filepath.Join(t.TempDir(), "locks.db")
	for _, args := range [][]string{
		{"ls", store}, {"ls", store, "-json"}, {"who", store, "a"}, {"who", store, "-json", "a"},
		{"force", store, "-yes", "a"}, {"watch", store, "-every", "10ms"}, {"version"}, {"-h"}, {"run", "-h"},
		{"man"}, {"completion", "bash"}, {"complete", ""},
	} {
		var stderr bytes.Buffer
		code := execute(append([]string{"withlock"}, args...), full{}, &stderr)
		require.Equal(t, exitStore, code, "%q", args)
		require.Equal(t, "withlock: standard output: no space left on device\n", stderr.String(), "%q", args)
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	code, stdout, _ := here("version")
	require.Zero(t, code)
	require.Regexp(t, `^withlock \S+ go\S+ \w+/\w+\n$`, stdout)
}

func TestStoreTextsDoNotControlTheTerminal(t *testing.T) {
	const harmless = "nightly 报告"
	require.Equal(t, harmless, printable(harmless))
	for name, shown := range map[string]string{
		"a\x1b[2J\tb": `"a\x1b[2J\tb"`, "a\x9bb": `"a\x9bb"`, "\xff": `"\xff"`, "a\u009bb": `"a\u009bb"`,
		"a\u202eb": `"a\u202eb"`, "a\u2066b": `"a\u2066b"`,
	} {
		require.Equal(t, shown, printable(name))
	}

	evil := "x\u202e\u009b2J\x9b\x1b\ty"
	views := []lockView{{Name: evil, Holders: []partyView{{Label: evil, Host: evil}}}}
	var text, lossless bytes.Buffer
	require.NoError(t, table(&text, views, true))
	require.NoError(t, printJSON(&lossless, views))
	for _, shown := range []string{text.String(), lossless.String(), oneLine(errors.New(evil))} {
		require.Equal(t, safe.Lines(shown), shown)
		require.Contains(t, shown, "2J")
	}
	require.Contains(t, text.String(), "x\ufffd\ufffd2J\ufffd\ufffd\ufffdy")
	var back []lockView
	require.NoError(t, json.Unmarshal(lossless.Bytes(), &back))
	require.Equal(t, strings.ToValidUTF8(evil, "\ufffd"), back[0].Name)
}

func TestHelpShowsNoPassword(t *testing.T) {
	t.Setenv("WITHLOCK_STORE", "redis://u:secretpw@h/0")
	for _, c := range []string{"run", "lead", "who", "ls", "force", "watch"} {
		code, stdout, stderr := here(c, "-h")
		require.Zero(t, code)
		require.Contains(t, stdout, "WITHLOCK_STORE")
		require.NotContains(t, stdout+stderr, "secretpw")
	}
}

// A command that go generate writes fails for lack of this.
func TestTheManualIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../withlock.1")
	require.NoError(t, err)
	code, stdout, _ := here("man")
	require.Zero(t, code)
	require.Equal(t, string(want), stdout, "withlock.1 is stale: run go generate")
}

func TestTheReadmeHasTheExitCodes(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, e := range exitCodes {
		require.Contains(t, string(text), "| "+e.code+" | "+e.meaning+" |")
	}
}

func TestTheCompletionKnowsCommandsAndFlags(t *testing.T) {
	const command = "the command's own"
	for _, c := range []struct{ words, candidates string }{
		{"", "completion force lead ls man run version watch who"},
		{"w", "watch who"},
		{"run -na", "-name"},
		{"run --na", "--name"},
		{"run -on-lost ", "kill none term"},
		{"run -on-lost k", "kill"},
		{"run -on-lost=k", ""},
		{"run -name ", ""},
		{"run -name -try --na", "--name"},
		{"run -name=q -name", "-name"},
		{"run -try --", "-- --grace --help --keep-store --label --name --on-lost --permits --store --try --ttl --wait"},
		{"run -name q -- ", command},
		{"run -name q -- -na", command},
		{"run -name q -- sh -- -na", command},
		{"lead backup.sh", command},
		{"lead backup.sh -na", command},
		{"completion ", "bash fish zsh"},
		{"who nightly -js", "-json"},
		{"who nig", ""},
		{"complete ", ""},
		{"no-such-command ", ""},
	} {
		code, stdout, stderr := here(append([]string{"complete"}, strings.Split(c.words, " ")...)...)
		require.Empty(t, stderr)
		if c.candidates == command {
			require.Equal(t, 1, code, "%q", c.words)
			require.Empty(t, stdout, "%q", c.words)
			continue
		}
		require.Zero(t, code, "%q", c.words)
		var found []string
		for line := range strings.Lines(stdout) {
			word, text, _ := strings.Cut(line, "\t")
			require.NotEmpty(t, text)
			found = append(found, word)
		}
		slices.Sort(found)
		require.Equal(t, strings.Fields(c.candidates), append([]string{}, found...), "%q", c.words)
	}
}

func TestAFreeLockIsShown(t *testing.T) {
	store := "-store=sqlite:" + filepath.Join(t.TempDir(), "locks.db")
	code, stdout, _ := here("who", store, "-json", "a")
	require.Equal(t, exitFree, code)
	var v lockView
	require.NoError(t, json.Unmarshal([]byte(stdout), &v))
	require.Equal(t, "a", v.Name)
	require.False(t, v.Held)
	code, stdout, _ = here("who", store, "a")
	require.Equal(t, exitFree, code)
	require.Contains(t, stdout, "a: free, ")
	code, stdout, _ = here("ls", store, "a")
	require.Zero(t, code)
	require.Contains(t, stdout, "NAME")
}

func TestJoinedErrorsAreOneLineWithSemicolons(t *testing.T) {
	err := errors.Join(errors.New("one:\t two: "), errors.New(""), errors.New("three: ; four: "))
	require.Equal(t, "one: two; three; four", oneLine(err))
}
