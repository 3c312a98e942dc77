package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// The shells, each with the first line of a session that has the completion.
var shells = []struct {
	name, program string
	args          []string
	setup         string
}{
	{"bash", "bash", []string{"--norc", "--noprofile", "-i"}, `source <(withlock completion bash)`},
	{
		"bash with bash-completion", "bash", []string{"--norc", "--noprofile", "-i"},
		`source /usr/share/bash-completion/bash_completion && source <(withlock completion bash)`,
	},
	{
		"zsh", "zsh", []string{"-f", "-i"},
		`autoload -U compinit && compinit -u -D && source <(withlock completion zsh)`,
	},
	{
		"zsh with a file in fpath", "zsh", []string{"-f", "-i"},
		`withlock completion zsh >$HOME/_withlock && fpath=($HOME $fpath) && autoload -U compinit && compinit -u -D`,
	},
	{
		"fish", "fish", []string{"--no-config", "-i"},
		`set -g fish_autosuggestion_enabled 0; withlock completion fish | source`,
	},
}

// session is a shell at a terminal, whose withlock is the program.
type session struct {
	t      *testing.T
	person *os.File
	home   string
	screen *notes
}

func newSession(t *testing.T, program string, args ...string) *session {
	person, programs := terminal(t)
	s := &session{t: t, person: person, home: t.TempDir(), screen: &notes{}}
	require.NoError(t, os.Mkdir(filepath.Join(s.home, "bin"), 0o755))
	s.write("bin/withlock", fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, os.Args[0]), 0o755)
	cmd := exec.Command(testbed.Lookup(t, program), args...)
	cmd.Dir = s.home
	cmd.Env = []string{
		"HOME=" + s.home, "PATH=" + filepath.Join(s.home, "bin") + ":" + os.Getenv("PATH"),
		"TERM=xterm", "LC_ALL=C.UTF-8",
		"GORACE=atexit_sleep_ms=0", // the race detector would add a second to each TAB
		"WITHLOCK_STORE=file:" + filepath.Join(s.home, "locks"),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = programs, programs, programs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for buffer := make([]byte, 4096); ; {
			n, err := person.Read(buffer)
			_, _ = s.screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		programs.Close()
		person.Close()
		<-read
		if t.Failed() {
			t.Logf("the screen: %q", s.screen)
		}
	})
	return s
}

func (s *session) write(name, text string, perm os.FileMode) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.home, name), []byte(text), perm))
}

func (s *session) key(text string) {
	_, err := s.person.WriteString(text)
	require.NoError(s.t, err)
}

// shown waits until the screen shows what matches pattern behind the first from bytes, and returns
// the first group.
func (s *session) shown(from int, pattern string) string {
	s.t.Helper()
	var found []string
	require.Eventually(s.t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(s.screen.String()[from:])
		return found != nil
	}, hang, 10*time.Millisecond, pattern)
	return found[1]
}

// completed types line and TAB, and returns what the line is then. No part of the line is run.
func (s *session) completed(line string) string {
	s.t.Helper()
	from := len(s.screen.String())
	s.key(line + "\t")
	s.key("\x01echo 'the line: \x05.'\r")                                    // quoted from its beginning to its end
	return strings.TrimRight(s.shown(from, `[\r\n]the line: (.*)\.\s`), " ") // not every shell adds a space
}

func TestACompletionNeverRunsTheCommand(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, shell.program, shell.args...)
			s.write("backup.sh", "#!/bin/sh\ntouch \"$HOME/ran\"\n", 0o755)
			s.write("dump.sql", "precious", 0o600)
			s.write("other.txt", "", 0o600)
			s.key(shell.setup + "; echo rea''dy\r")
			s.shown(0, "(ready)")

			for _, c := range []struct{ line, want string }{
				{"withlock fo", "withlock force"},
				{"withlock run -na", "withlock run -name"},
				{"withlock run --name q --on-l", "withlock run --name q --on-lost"},
				{"withlock run -on-lost ki", "withlock run -on-lost kill"},
				{"withlock run -store redis://h:1/0 -on-l", "withlock run -store redis://h:1/0 -on-lost"},
				{"withlock completion fi", "withlock completion fish"},
				{"withlock run -name oth", "withlock run -name oth"}, // a name is no file
				{"withlock run --name q -- backup.sh oth", "withlock run --name q -- backup.sh other.txt"},
				{"withlock run --name q -- backup.sh -na", "withlock run --name q -- backup.sh -na"},
				{"withlock run --name q backup.sh oth", "withlock run --name q backup.sh other.txt"},
				{"withlock run --name q -- sh > dump.sql oth", "withlock run --name q -- sh > dump.sql other.txt"},
				{"withlock run --name `touch ran` -- oth", "withlock run --name `touch ran` -- other.txt"},
			} {
				assert.Equal(t, c.want, s.completed(c.line))
			}
			from := len(s.screen.String())
			s.key("withlock w\t\t")
			s.shown(from, "(watch)")
			s.shown(from, "(who)")
			assert.NoFileExists(t, filepath.Join(s.home, "ran"), "the command ran")
			text, err := os.ReadFile(filepath.Join(s.home, "dump.sql"))
			require.NoError(t, err)
			assert.Equal(t, "precious", string(text))
		})
	}
}
