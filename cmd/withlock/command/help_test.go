//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/open"
)

// doNothing writes programs that do nothing, and makes their folder the working directory.
func doNothing(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700))
	}
}

func TestTheExamplesOfTheHelpWork(t *testing.T) {
	doNothing(t, "backup.sh", "import.sh", "scheduler")
	t.Setenv("WITHLOCK_STORE", "sqlite:locks.db?kind=queue")
	for _, e := range examples {
		words := strings.Fields(strings.ReplaceAll(e.line, "'", ""))
		require.Equal(t, []string{"withlock", e.command}, words[:2])
		code, _, stderr := here(words[1:]...)
		want := 0
		if e.command == "who" || e.command == "force" {
			want = exitFree
		}
		require.Equal(t, want, code, "%s: %s", e.line, stderr)
	}
}

func TestHelpAndManualHaveTheSameTexts(t *testing.T) {
	_, help, _ := here("--help")
	_, man, _ := here("man")
	man = strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`).Replace(man)
	for _, e := range examples {
		require.Contains(t, help, e.line)
		require.Contains(t, man, e.line)
		_, of, _ := here(e.command, "-h")
		require.Contains(t, of, e.line)
	}
	for _, e := range exitCodes {
		require.Contains(t, help, e.code+" ")
		require.Contains(t, help, e.meaning)
		require.Contains(t, man, e.meaning)
	}
	for _, s := range storeURLs {
		require.Contains(t, help, s.url)
		require.Contains(t, man, s.url)
	}
	for _, text := range []string{times, exitNote} {
		require.Contains(t, help, text)
		require.Contains(t, man, text)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"run", "-h"}, {"lead", "-h"}, {"watch", "-h"}} {
		_, help, _ := here(args...)
		for line := range strings.Lines(help) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, "%q: %s", args, line)
		}
	}
}

func TestHelpIsAskedForInAnyWay(t *testing.T) {
	_, want, _ := here("-h")
	for _, args := range [][]string{{"--help"}, {"help"}, {}, {"help", "-h"}} {
		code, stdout, stderr := here(args...)
		require.Zero(t, code, "%q: %s", args, stderr)
		require.Equal(t, want, stdout, "%q", args)
	}
	_, want, _ = here("run", "-h")
	for _, args := range [][]string{{"run", "--help"}, {"help", "run"}} {
		code, stdout, _ := here(args...)
		require.Zero(t, code)
		require.Equal(t, want, stdout, "%q", args)
	}
	code, stdout, _ := here("--version")
	require.Zero(t, code)
	require.Contains(t, stdout, "withlock ")
}

// The help has every store of package open but the memory of one process.
func TestTheHelpHasEveryStore(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	shown := map[string]bool{"mem": true}
	for _, s := range storeURLs {
		scheme, _, _ := strings.Cut(s.url, ":")
		shown[scheme] = true
		_, err := open.URL(ended, strings.Replace(s.url, ":NAMESPACE", ":namespace", 1))
		require.ErrorIs(t, err, context.Canceled, "%s: the form is wrong", s.url)
	}
	_, err := open.URL(t.Context(), "no-such-scheme:")
	_, known, _ := strings.Cut(err.Error(), "begin with one of ")
	for _, scheme := range regexp.MustCompile(`[a-z0-9+]+`).FindAllString(known, -1) {
		require.True(t, shown[scheme], "the help lacks %s", scheme)
		delete(shown, scheme)
	}
	require.Empty(t, shown, "in the help and not in package open")
}

func TestANumberWithoutAUnitIsSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0": 0, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond,
		"-1": -time.Second, "+3": 3 * time.Second,
		"10s": 10 * time.Second, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute,
	} {
		var v timeValue
		require.NoError(t, v.Set(text), text)
		require.Equal(t, want, v.Get(), text)
	}
	for _, text := range []string{"", "s", "soon", "1h30", "10 s", "1e3", "0x10", "inf", "1.2.3", "9999999999999"} {
		var v timeValue
		require.Error(t, v.Set(text), text)
	}
}

func TestEveryTimeOfTheProgramTakesSeconds(t *testing.T) {
	root := commands(&output{}, nil)
	for _, c := range root.Commands {
		for _, f := range c.Flags {
			if f, ok := f.(interface{ TypeName() string }); ok && f.TypeName() == "duration" {
				require.IsType(t, &timeFlag{}, f, "%s: %v", c.Name, f)
			}
		}
	}
	doNothing(t, "backup.sh")
	code, _, stderr := here("run", "-store=sqlite:locks.db?ttl=20", "-name=a", "-ttl=30", "-wait=5", "-grace=1", "./backup.sh")
	require.Zero(t, code, stderr)
}

func TestNoErrorEndsWithAColon(t *testing.T) {
	for _, err := range []error{
		failure{code: 130}, errors.Join(errors.New("a: "), failure{}), fail(1, "lost: %w", failure{}),
		fail(1, "lost: %w; %w", failure{}, errors.New("b")),
	} {
		text := oneLine(err)
		require.NotRegexp(t, `:\s*(;|$)`, text)
	}
}

func TestTheReadmeSaysWhatTheHelpSays(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, c := range commands(&output{}, nil).VisibleCommands() {
		require.Contains(t, string(text), "withlock "+c.Name)
	}
}
