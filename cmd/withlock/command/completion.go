package command

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

//go:embed completion/withlock.bash completion/_withlock completion/withlock.fish
var scripts embed.FS

// scriptOf are the files of the shells.
var scriptOf = map[string]string{"bash": "withlock.bash", "zsh": "_withlock", "fish": "withlock.fish"}

// completion prints the script that makes a shell ask complete.
func (t *tool) completion(_ context.Context, c *cli.Command) error {
	name, ok := scriptOf[c.Args().First()]
	if !ok || c.Args().Len() != 1 {
		return fail(exitUsage, "need a shell: %s bash, zsh or fish", c.FullName())
	}
	script, err := scripts.ReadFile("completion/" + name)
	if err == nil {
		_, err = t.stdout.Write(script)
	}
	return err
}

// complete prints the candidates for the last of the words of a command line, with a tab and a text
// behind each. It runs no other command and parses no flags of theirs. It fails if the word belongs
// to the command to run: only files can be suggested there.
func (t *tool) complete(_ context.Context, c *cli.Command) error {
	candidates, ok := candidates(c.Root(), c.Args().Slice(), t.said)
	if !ok {
		return failure{code: 1}
	}
	for _, candidate := range candidates {
		if _, err := fmt.Fprintln(t.stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the candidates for the last of words, or false if it belongs to the command to
// run.
func candidates(root *cli.Command, words []string, said language) (all []string, ok bool) {
	if len(words) == 0 {
		return nil, true
	}
	last := words[len(words)-1]
	add := func(candidate, text string) {
		if strings.HasPrefix(candidate, last) {
			all = append(all, candidate+"\t"+text)
		}
	}
	if len(words) == 1 {
		for _, c := range root.VisibleCommands() {
			add(c.Name, c.Usage)
		}
		return all, true
	}
	of := root.Command(words[0])
	if of == nil || of.Hidden {
		return nil, true
	}
	runs := of.StopOnNthArg != nil
	var needs cli.Flag // the flag whose value is the next word
	for _, word := range words[1 : len(words)-1] {
		switch {
		case needs != nil:
			needs = nil
		case runs && (word == "--" || !strings.HasPrefix(word, "-")):
			return nil, false
		case strings.HasPrefix(word, "-") && !strings.Contains(word, "="):
			needs = valueFlag(of, strings.TrimLeft(word, "-"))
		}
	}
	switch {
	case needs != nil:
		if slices.Contains(needs.Names(), "on-lost") {
			add("term", said.of("SIGTERM, and SIGKILL after the grace period"))
			add("kill", "SIGKILL")
			add("none", said.of("the command goes on"))
		}
	case of.Name == "completion":
		for _, shell := range []string{"bash", "zsh", "fish"} {
			add(shell, fmt.Sprintf(said.of("the script for %s"), shell))
		}
	case strings.HasPrefix(last, "-"):
		dashes := "-"
		if strings.HasPrefix(last, "--") {
			dashes = "--"
		}
		for _, f := range of.Flags {
			add(dashes+f.Names()[0], strings.ReplaceAll(said.of(f.(cli.DocGenerationFlag).GetUsage()), "`", ""))
		}
		if runs {
			add("--", said.of("the command follows"))
		}
	case runs && last != "":
		return nil, false // the command without the dashes
	}
	return all, true
}

// valueFlag returns the flag of c called name if it takes a value, or nil.
func valueFlag(c *cli.Command, name string) cli.Flag {
	for _, f := range c.Flags {
		if slices.Contains(f.Names(), name) && f.(cli.DocGenerationFlag).TakesValue() {
			return f
		}
	}
	return nil
}
