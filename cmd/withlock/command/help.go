package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/jucgo/locks/distributed/open"
	safe "github.com/jucgo/locks/internal/terminal"
)

// The texts below are in the help, and in the manual, which is made of them.

// about tells the purpose of the program.
const about = `withlock runs a command while it holds a lock, so that the command runs on one of several machines at a time.
The lock is in a store that all of these machines reach, such as a Redis server or a PostgreSQL database.
Every name is a lock of its own, and needs no preparation.

Give the URL of the store by -store or by the variable WITHLOCK_STORE.
A URL with a password belongs in the variable: other users of the machine can read command lines.`

// times tells how times are written.
const times = `A time is a number of seconds (10, 0.5), or has units: 500ms, 10s, 5m, 1h30m.`

// examples are command lines, each with its purpose.
var examples = []struct{ command, purpose, line string }{
	{"run", "Wait for the lock, then run a backup:", "withlock run -name nightly -- ./backup.sh"},
	{"run", "Leave it if another machine makes the backup:", "withlock run -name nightly -try -- ./backup.sh"},
	{"run", "Wait for ten minutes at most:", "withlock run -name nightly -wait 10m -- ./backup.sh"},
	{"run", "Run three commands of this name at a time at most:", "withlock run -name import -permits 3 -- ./import.sh"},
	{"lead", "Keep a program running on one of several machines:", "withlock lead -name scheduler -- ./scheduler"},
	{"who", "See who holds a lock, and who waits:", "withlock who nightly"},
	{"ls", "List the locks that begin with shop:", "withlock ls 'shop*'"},
	{"force", "Free a lock whose holder is gone for good:", "withlock force -yes nightly"},
}

// storeURL is the form of a URL, and its purpose.
type storeURL struct{ url, store string }

// storeURLs are the forms of URLs of all stores.
var storeURLs = []storeURL{
	{"file:/run/lock/shop", "a directory of this machine"},
	{"sqlite:/var/lib/shop.db", "a file of SQLite"},
	{"postgres://USER:PASSWORD@HOST:5432/DATABASE", "PostgreSQL"},
	{"mysql://USER:PASSWORD@HOST:3306/DATABASE", "MySQL or MariaDB"},
	{"redis://USER:PASSWORD@HOST:6379/0", "Redis or Valkey"},
	{"rediss://USER:PASSWORD@HOST:6379/0", "the same, with TLS"},
	{"redis+sentinel://HOST1:26379,HOST2:26379/0?master=NAME", "the master behind sentinels"},
	{"redis+cluster://HOST1:6379,HOST2:6379", "a cluster of Redis"},
	{"zk://HOST1:2181,HOST2:2181/NAMESPACE", "ZooKeeper"},
	{"etcd://HOST1:2379,HOST2:2379", "etcd"},
	{"consul://:TOKEN@HOST:8500/PREFIX", "an agent of Consul"},
	{"nats://HOST1:4222,HOST2:4222/BUCKET", "NATS JetStream"},
	{"s3://ACCESSKEY:SECRET@BUCKET/PREFIX", "Amazon S3, and stores like it"},
	{"gs://BUCKET/PREFIX", "Google Cloud Storage"},
	{"dynamodb://REGION/TABLE", "Amazon DynamoDB"},
	{"kubernetes:NAMESPACE", "Lease objects of Kubernetes"},
}

// knownStores returns the storeURLs of the stores that the program imports.
func knownStores() (known []storeURL) {
	schemes := open.Schemes()
	for _, s := range storeURLs {
		if scheme, _, _ := strings.Cut(s.url, ":"); slices.Contains(schemes, scheme) {
			known = append(known, s)
		}
	}
	return known
}

const (
	storesNote = `The manual of the parameters behind a question mark, such as ?ttl=30s: ` + openPage
	openPage   = "https://pkg.go.dev/github.com/jucgo/locks/distributed/open"
	readmePage = "https://pkg.go.dev/github.com/jucgo/locks/cmd/withlock"
)

// exitCodes is the table of the help, the manual and the README.
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

// exitNote tells how to keep the codes of a command apart.
const exitNote = `A command's own 64, 69, 74, 75 or 79 looks the same. To avoid that: sh -c './backup.sh || exit 1'`

// helpOf returns the help of the program, a template of package cli.
func helpOf(root *cli.Command, said language) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s\n", said.filled(said.of(about), "", helpWidth))
	line("%s\n   withlock COMMAND [FLAG...] [ARGUMENT...]\n\n%s", said.of("USAGE:"), said.of("COMMANDS:"))
	for _, c := range root.VisibleCommands() {
		line("   %-11s %s", c.Name, c.Usage)
	}
	line("\n   %s\n\n%s", said.of("withlock COMMAND -h shows the flags of a command."), said.of("EXAMPLES:"))
	line("   export WITHLOCK_STORE=redis://localhost:6379/0\n%s\n%s\n%s\n\n%s", examplesOf("", said), said.of("TIMES:"),
		said.filled(said.of(times), "   ", helpWidth), said.of("STORES:"))
	for _, s := range knownStores() {
		line("   %-55s %s", s.url, said.of(s.store))
	}
	line("\n%s\n\n%s", said.filled(said.of(storesNote), "   ", helpWidth), said.of("EXIT CODES:"))
	for _, e := range exitCodes {
		code := said.of(e.code)
		line("   %s%s %s", code, strings.Repeat(" ", max(0, 6-safe.Columns(code))), said.of(e.meaning))
	}
	line("   %s", said.of(exitNote))
	line("\n%s\n   withlock man | man -l -    %s\n   %s", said.of("MORE:"), said.of("the manual"), readmePage)
	return b.String()
}

// helpOfCommand returns the help of c, a template of package cli.
func helpOfCommand(c *cli.Command, said language) string {
	text := strings.TrimSuffix(cli.CommandHelpTemplate, "\n") + "\n"
	if said {
		text = said.helpOfFlags(c)
	}
	if lines := examplesOf(c.Name, said); lines != "" {
		text += "\n" + said.of("EXAMPLES:") + "\n" + lines
	}
	for _, f := range c.Flags {
		if _, ok := f.(*timeFlag); ok {
			return text + "\n" + said.of("TIMES:") + "\n" + said.filled(said.of(times), "   ", helpWidth) + "\n"
		}
	}
	return text
}

// examplesOf returns the examples of a command, or all.
func examplesOf(command string, said language) string {
	var b strings.Builder
	for _, e := range examples {
		if command == "" || command == e.command {
			fmt.Fprintf(&b, "   # %s\n   %s\n", said.of(e.purpose), e.line)
		}
	}
	return b.String()
}

// helpWidth is the width of old terminals.
const helpWidth = 80

// filled returns text with lines of up to width bytes, each behind indent. An empty line stays.
func filled(text, indent string, width int) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(indent)
		used := len(indent)
		for j, word := range strings.Fields(paragraph) {
			switch {
			case j > 0 && used+1+len(word) > width:
				b.WriteString("\n" + indent)
				used = len(indent)
			case j > 0:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += len(word)
		}
	}
	return b.String()
}
