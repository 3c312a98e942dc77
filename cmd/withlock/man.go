package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

//go:generate sh -c "go run . man > withlock.1"

// manual returns the man page of the commands below root.
func manual(root *cli.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH WITHLOCK 1`)
	line(".SH NAME\n%s \\- %s", root.Name, roff(root.Usage))
	line(".SH SYNOPSIS")
	for i, c := range root.VisibleCommands() {
		if i > 0 {
			line(".br")
		}
		line(".B %s %s\n[\\fIFLAG\\fR...] %s", root.Name, c.Name, roff(c.ArgsUsage))
	}
	line(".SH DESCRIPTION\n%s", roff(root.Description))
	for _, c := range root.VisibleCommands() {
		line(".SH %s\nThis command is to %s.", strings.ToUpper(c.Name), roff(c.Usage))
		if c.Description != "" {
			line("%s", roff(c.Description))
		}
		for _, f := range c.Flags {
			line(".TP\n%s", flagText(f))
		}
	}
	line(".SH EXIT STATUS")
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", e.code, roff(e.meaning))
	}
	line(".SH ENVIRONMENT\n.TP\n.B WITHLOCK_STORE\nThe URL of the store, if \\-store is not given.")
	line("The command of run and lead does not get it, unless \\-keep\\-store is given.")
	line(".TP\n.B LOCK_NAME, LOCK_TOKEN")
	line("The command of run and lead gets them: the name of the lock, and its fencing token.")
	line("run and lead refuse the name that LOCK_NAME has already: they would wait for themselves.")
	return b.String()
}

// flagText returns the tag and the text of a flag.
func flagText(flag cli.Flag) string {
	f := flag.(cli.DocGenerationFlag)
	usage, value := f.GetUsage(), ""
	if parts := strings.SplitN(usage, "`", 3); len(parts) == 3 {
		usage = parts[0] + parts[1] + parts[2]
		if f.TakesValue() {
			value = ` \fI` + roff(parts[1]) + `\fR`
		}
	}
	text := f.GetDefaultText()
	if text == "" {
		text = f.GetValue()
	}
	if text != "" && text != `""` && f.TakesValue() {
		usage += " (default " + strings.Trim(text, `"`) + ")"
	}
	return fmt.Sprintf(".B \\-%s%s\n%s", roff(flag.Names()[0]), value, roff(usage))
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// roff returns text for troff. A line must not begin with a control character.
func roff(text string) string {
	text = roffEscapes.Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// exitCodes is the table of the manual and of the README.
var exitCodes = []struct{ code, meaning string }{
	{"0", "Success. For run and lead: the command succeeded."},
	{"1", "who, force: the lock is not held."},
	{"64", "Wrong arguments, a wrong URL or name, or something that the store cannot do."},
	{"69", "The store does not answer. lead waits for it."},
	{"74", "The store answers with an error, or the output cannot be written."},
	{"75", "run: another owner holds the lock, and -try or -wait ended the attempt."},
	{"79", "run: the lock was lost while the command ran, or its release was not confirmed."},
	{"126", "The command cannot be executed."},
	{"127", "The command does not exist."},
	{"128+N", "Signal N ended the command, or the wait for the lock."},
	{"other", "run and lead: the exit code of the command."},
}
