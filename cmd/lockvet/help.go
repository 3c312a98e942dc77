package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

//go:generate sh -c "go run . help man > lockvet.1"

// The texts below are in the help, and in the manual, which is made of them.

const about = `lockvet reads Go source, and reports mistakes with locks: those of package sync, and those of github.com/jucgo/locks.
It runs nothing of the program.
Each report is one line with the file, the line, the mistake, and the name of the check.`

// usages are command lines, each with its purpose.
var usages = []struct{ line, purpose string }{
	{"lockvet ./...", "check all packages below the working directory"},
	{"lockvet -fix ./...", "apply the fixes that are safe"},
	{"lockvet -fix -diff ./...", "show these fixes, and change no file"},
	{"lockvet -lockorder ./...", "run one check alone"},
	{"lockvet -lockorder=false ./...", "run all checks but one"},
	{"lockvet -json ./...", "print the reports in JSON"},
	{"lockvet -generated ./...", "report mistakes in generated files too"},
	{"lockvet -leftout ./...", "print how many acquisitions of locks are left out, and why"},
	{"lockvet help lockorder", "show an example of what a check reports"},
	{"go vet -vettool=$(which lockvet) ./...", "the same checks within go vet, with its cache and less memory"},
}

// limits lists the code that no check looks at.
const limits = `No report does not mean that there is no mistake. The checks do not look at these:`

var unseen = []string{
	"calls through an interface with several types, or through a variable with several functions",
	"calls of packages of other modules, except for the methods of the locks themselves, and for Do and TryDo",
	"locks without a fixed name in the function, such as shards[i].mu or the result of a call",
	"locks that the function hands to other code, and locks that it holds on some paths only",
	"two objects of one type that are locked in opposite orders",
	"channels that other packages can get, or that are in a slice or a map, and the locks of other processes",
	"in tests: missingunlock, blocked, lockerror and waitloop",
}

const other = `A test can find more: package deadlock reports what a run leads to, and package lockstest/explore tries many schedules.`

// exitCodes are the exit codes of lockvet by itself.
var exitCodes = []struct{ code, meaning string }{
	{"0", "There is no report."},
	{"1", "No package is given, or one cannot be read or compiled."},
	{"2", "A flag is not known."},
	{"3", "There are reports."},
}

const page = "https://pkg.go.dev/github.com/jucgo/locks/cmd/lockvet"

// helped prints the help that args ask for, if they ask for any. It returns the exit code.
func helped(args []string, analyzers []*analysis.Analyzer, stdout, stderr io.Writer) (code int, ok bool) {
	switch {
	case len(args) == 0:
		fmt.Fprintln(stderr, "lockvet: no package is given, such as ./... for all: see lockvet help")
		return 1, true
	case slices.Contains([]string{"-h", "-help", "--help"}, args[0]), len(args) == 1 && args[0] == "help":
		fmt.Fprint(stdout, help(analyzers))
	case args[0] == "--version" || args[0] == "-version":
		version := "(unknown version)"
		if info, ok := debug.ReadBuildInfo(); ok {
			version = info.Main.Version
		}
		fmt.Fprintln(stdout, "lockvet", version)
	case args[0] != "help":
		return 0, false
	case args[1] == "complete":
		return complete(args[2:], analyzers, stdout), true
	case args[1] == "completion":
		return completion(args[2:], stdout, stderr), true
	case args[1] == "man":
		fmt.Fprint(stdout, manual(analyzers))
	default:
		for _, name := range args[1:] {
			i := slices.IndexFunc(analyzers, func(a *analysis.Analyzer) bool { return a.Name == name })
			if i < 0 {
				fmt.Fprintf(stderr, "lockvet: no check is called %q: see lockvet help\n", name)
				return 1, true
			}
			title, text, _ := strings.Cut(analyzers[i].Doc, "\n")
			fmt.Fprintf(stdout, "%s: %s\n%s\n\n%s\n", name, title, text, limits)
			for _, u := range unseen {
				fmt.Fprintln(stdout, "  -", u)
			}
		}
	}
	return 0, true
}

// shortUsage is printed behind the error of a wrong flag.
func shortUsage() { fmt.Fprintln(os.Stderr, "lockvet: see lockvet help") }

func title(a *analysis.Analyzer) string {
	title, _, _ := strings.Cut(a.Doc, "\n")
	return title
}

func help(analyzers []*analysis.Analyzer) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s\n\nUSAGE:", about)
	for _, u := range usages {
		line("   %-40s %s", u.line, u.purpose)
	}
	line("\nCHECKS:")
	for _, a := range analyzers {
		line("   %-15s %s", a.Name, title(a))
	}
	line("\nLIMITS:\n   %s", limits)
	for _, u := range unseen {
		line("   - %s", u)
	}
	line("   %s\n\nEXIT CODES:", other)
	for _, e := range exitCodes {
		line("   %-3s %s", e.code, e.meaning)
	}
	line("\nMORE:\n   lockvet help man | man -l -    the manual\n   lockvet help completion bash   the completion, also for zsh and fish\n   %s", page)
	return b.String()
}

var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// manual returns the man page.
func manual(analyzers []*analysis.Analyzer) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, roff.Replace(format)+"\n", args...) }
	b.WriteString(".TH LOCKVET 1\n.SH NAME\nlockvet \\- find mistakes with locks in Go source\n.SH SYNOPSIS\n")
	b.WriteString(".B lockvet\n[\\fIFLAG\\fR...] \\fIPACKAGE\\fR...\n")
	line(".SH DESCRIPTION\n%s\n.SH EXAMPLES", roff.Replace(about))
	for _, u := range usages {
		line(".TP\n.B %s\n%s", roff.Replace(u.line), roff.Replace(u.purpose))
	}
	line(".SH CHECKS")
	for _, a := range analyzers {
		line(".TP\n.B %s\n%s", a.Name, roff.Replace(title(a)))
	}
	line(".SH LIMITS\n%s", roff.Replace(limits))
	for _, u := range unseen {
		line(".IP * 2\n%s", roff.Replace(u))
	}
	line(".PP\n%s\n.SH EXIT STATUS", roff.Replace(other))
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", e.code, e.meaning)
	}
	line(".SH SEE ALSO\n%s", roff.Replace(page))
	return b.String()
}
