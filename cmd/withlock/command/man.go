package command

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// manual returns the man page of the commands below root.
func manual(root *cli.Command, said language) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	roff := func(text string) string { return said.breakable(roff(said.of(text))) }
	head := func(title string) { line("%s", said.of(".SH "+title)) }
	line(`.TH WITHLOCK 1`)
	if said {
		line(".ad l") // the spaces of justified lines would stand between characters
	}
	head("NAME")
	line("%s \\- %s", root.Name, roff(root.Usage))
	head("SYNOPSIS")
	for i, c := range root.VisibleCommands() {
		if i > 0 {
			line(".br")
		}
		line(".B %s %s\n[\\fIFLAG\\fR...] %s", root.Name, c.Name, roff(c.ArgsUsage))
	}
	head("DESCRIPTION")
	line("%s", strings.ReplaceAll(roff(about), "\n\n", "\n.PP\n"))
	line("%s", roff(times))
	for _, c := range root.VisibleCommands() {
		line(".SH %s\n"+said.of("This command is to %s."), strings.ToUpper(c.Name), roff(c.Usage))
		if c.Description != "" {
			line("%s", roff(c.Description))
		}
		for _, f := range c.Flags {
			line(".TP\n%s", flagText(f, said))
		}
	}
	head("STORES")
	for _, s := range knownStores() {
		line(".TP\n.B %s\n%s", roff(s.url), roff(s.store))
	}
	line(".PP\n%s", roff(storesNote))
	head("EXAMPLES")
	line(".EX")
	for _, e := range examples {
		line("# %s\n%s", roff(e.purpose), roff(e.line))
	}
	line(".EE")
	head("EXIT STATUS")
	for _, e := range exitCodes {
		line(".TP\n.B %s\n%s", said.of(e.code), roff(e.meaning))
	}
	line(".PP\n%s", roff(exitNote))
	head("ENVIRONMENT")
	line(".TP\n.B WITHLOCK_STORE\n%s", roff("The URL of the store, if -store is not given."))
	line("%s", roff("The command of run and lead does not get it, unless -keep-store is given."))
	line(".TP\n.B LOCK_NAME, LOCK_TOKEN")
	line("%s", roff("The command of run and lead gets them: the name of the lock, and its fencing token."))
	line("%s", roff("run and lead refuse the name that LOCK_NAME has already: they would wait for themselves."))
	head("SEE ALSO")
	line("%s, flock(1), timeout(1)", roff(readmePage))
	return b.String()
}

// flagText returns the tag and the text of a flag.
func flagText(flag cli.Flag, said language) string {
	f := flag.(cli.DocGenerationFlag)
	usage, value := said.of(f.GetUsage()), ""
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
		usage += fmt.Sprintf(said.of(" (default %s)"), strings.Trim(text, `"`))
	}
	return fmt.Sprintf(".B \\-%s%s\n%s", roff(flag.Names()[0]), value, said.breakable(roff(usage)))
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
