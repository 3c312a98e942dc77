package main

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"golang.org/x/tools/go/analysis"
)

//go:embed completion/lockvet.bash completion/_lockvet completion/lockvet.fish
var scripts embed.FS

// scriptOf are the files of the shells.
var scriptOf = map[string]string{"bash": "lockvet.bash", "zsh": "_lockvet", "fish": "lockvet.fish"}

// flags are the flags of lockvet besides the names of the checks, each with its purpose.
var flags = []struct{ name, purpose string }{
	{"-diff", "with -fix: show the fixes, and change no file"},
	{"-fix", "apply the fixes that are safe"},
	{"-generated", "report mistakes in generated files too"},
	{"-leftout", "print how many acquisitions of locks are left out, and why"},
	{"-json", "print the reports in JSON"},
	{"-locktypes=", "further types of locks: import/path.Type,..."},
	{"-test=false", "leave out tests"},
}

// completion prints the script that makes a shell ask complete.
func completion(shells []string, stdout, stderr io.Writer) (code int) {
	if len(shells) == 1 && scriptOf[shells[0]] != "" {
		script, err := scripts.ReadFile("completion/" + scriptOf[shells[0]])
		if err == nil {
			_, err = stdout.Write(script)
		}
		if err == nil {
			return 0
		}
	}
	fmt.Fprintln(stderr, "lockvet: need a shell: lockvet help completion bash, zsh or fish")
	return 1
}

// complete prints the candidates for the last of the words of a command line, with a tab and a text
// behind each. It fails if there is none: then the word is a package.
func complete(words []string, analyzers []*analysis.Analyzer, stdout io.Writer) (code int) {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	code = 1
	add := func(name, text string) {
		if strings.HasPrefix(name, last) {
			fmt.Fprintf(stdout, "%s\t%s\n", name, text)
			code = 0
		}
	}
	switch {
	case len(words) > 2 && words[0] == "help" && words[1] == "completion":
		for _, shell := range []string{"bash", "fish", "zsh"} {
			add(shell, "print the completion for "+shell)
		}
	case len(words) > 1 && words[0] == "help":
		for _, a := range analyzers {
			add(a.Name, title(a))
		}
		add("completion", "print the completion for a shell")
		add("man", "print the manual")
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			add(f.name, f.purpose)
		}
		for _, a := range analyzers {
			add("-"+a.Name, title(a))
		}
	case len(words) == 1 && last != "":
		add("help", "explain a check, a flag or an exit code")
	}
	return code
}
