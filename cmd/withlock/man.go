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
	line(".SH DESCRIPTION\n%s", strings.ReplaceAll(roff(about), "\n\n", "\n.PP\n"))
	line("%s", roff(times))
	for _, c := range root.VisibleCommands() {
		line(".SH %s\nThis command is to %s.", strings.ToUpper(c.Name), roff(c.Usage))
		if c.Description != "" {
			line("%s", roff(c.Description))
		}
		for _, f := range c.Flags {
			line(".TP\n%s", flagText(f))
		}
	}
	line(".SH STORES")
	for _, s := range storeURLs {
		line(".TP\n.B %s\n%s", roff(s.url), roff(s.store))
	}
	line(".PP\n%s\n.SH EXAMPLES\n.EX", roff(storesNote))
	for _, e := range examples {
		line("# %s\n%s", roff(e.purpose), roff(e.line))
	}
	line(".EE\n.SH EXIT STATUS")
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", e.code, roff(e.meaning))
	}
	line(".PP\n%s", roff(exitNote))
	line(".SH ENVIRONMENT\n.TP\n.B WITHLOCK_STORE\nThe URL of the store, if \\-store is not given.")
	line("The command of run and lead does not get it, unless \\-keep\\-store is given.")
	line(".TP\n.B LOCK_NAME, LOCK_TOKEN")
	line("The command of run and lead gets them: the name of the lock, and its fencing token.")
	line("run and lead refuse the name that LOCK_NAME has already: they would wait for themselves.")
	line(".SH SEE ALSO\n%s, flock(1), timeout(1)", roff(readmePage))
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
