package command

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shapes are commands of several processes that nap. Some processes leave the command's process
// group, or its session, or run as another user.
var shapes = map[string][]string{
	"two commands":     {"sh", "-c", "echo up; sleep 1000; echo no"},
	"pipeline":         {"sh", "-c", "echo up | cat; sleep 1000 | cat"},
	"timeout":          {"timeout", "1000", "sh", "-c", naps},
	"nohup":            {"nohup", "sh", "-c", naps},
	"no environment":   {"env", "-i", "sh", "-c", "echo up; /bin/sleep 1000; echo no"},
	"background":       {"sh", "-c", "sleep 1000 & echo up; wait"},
	"jobs of a shell":  {"bash", "-c", "set -m; sleep 1000 & sleep 1000 & echo up; wait"},
	"session":          {"setsid", "-w", "sh", "-c", naps},
	"daemon":           {"sh", "-c", "(setsid sh -c 'sleep 1000 & echo up; exec sleep 1000' &); exec sleep 1000"},
	"su":               {"su", "nobody", "-s", "/bin/sh", "-c", "echo up; sleep 1000; echo no"},
	"setpriv":          {"setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", "echo up; sleep 1000; echo no"},
	"deaf to all":      {"sh", "-c", "trap '' HUP INT QUIT TERM; echo up; while :; do sleep 1; done"},
	"stopped":          {"sh", "-c", "echo up; kill -STOP $$"},
	"parent that ends": {"sh", "-c", "(sh -c 'sleep 1000; echo no' &) ; (sh -c '(sleep 1000; echo no) &') ; " + naps},
}

// eachShape calls f for each shape with the program that runs it.
func eachShape(t *testing.T, url string, f func(p *process, name string), args ...string) {
	for shape, argv := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(shape, " ", "-")
			p := start(t, url, slices.Concat([]string{"run", "-name", name}, args, []string{"--"}, argv)...)
			require.Equal(t, "up", p.line())
			f(p, name)
		})
	}
}

func TestKillingTheProgramEndsTheCommandsWholeTree(t *testing.T) {
	eachShape(t, fileStore(t), func(p *process, name string) {
		require.NoError(t, p.cmd.Process.Kill())
		p.eof() // all of them have the other end
	})
}

func TestALossEndsAllThatTheCommandStarted(t *testing.T) {
	url := redisStore(t)
	eachShape(t, url, func(p *process, name string) {
		require.Zero(t, start(t, url, "force", "-yes", name).code())
		require.Equal(t, exitLost, p.code())
		p.eof()
	}, "-ttl", longTTL, "-grace", "100ms")
}

func TestTheCommandDiesBeforeTheNextHolderRuns(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	p := inFrontOf(t, url)
	// SIGKILL comes the margin before the end of the lease, which is a twentieth of it.
	holder := start(t, serverOf.ReplaceAllString(url, p.Addr()), "run", "-name", "a", "-ttl", "20s", "--",
		"sh", "-c", `trap 'echo got TERM' TERM; echo up $$; while :; do sleep 0.1; done`)
	var pid int
	_, err := fmt.Sscanf(holder.line(), "up %d", &pid)
	require.NoError(t, err)
	next := start(t, url, "run", "-name", "a", "--", "sh", "-c", fmt.Sprintf("kill -0 %d || echo alone", pid))
	time.Sleep(time.Second) // any time within the lease
	p.Cut()
	require.Equal(t, "alone", next.line())
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}

func TestALeaderWhoseHoldRunsOutCampaignsAgain(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	p := inFrontOf(t, url)
	url = serverOf.ReplaceAllString(url, p.Addr())
	leader := start(t, url, "lead", "-name", "a", "-ttl", "6s", "--", "sh", "-c", traps)
	require.Contains(t, leader.line(), "up a")
	p.Cut()
	require.Equal(t, "got TERM", leader.line())
	p.Heal()
	require.Contains(t, leader.line(), "up a")
	leader.signal(syscall.SIGTERM)
	require.Equal(t, "got TERM", leader.line())
	require.Equal(t, 5, leader.code())
}

func TestAFileStaysLockedWhileItsCommandLives(t *testing.T) {
	t.Parallel()
	url := fileStore(t)
	holder := start(t, url, "run", "-name", "a", "--",
		"sh", "-c", "echo $PPID; setsid -f sh -c 'echo $$; exec sleep 1000'; exec sleep 1000")
	var guard, survivor int
	for _, pid := range []*int{&guard, &survivor} {
		_, err := fmt.Sscan(holder.line(), pid)
		require.NoError(t, err)
	}
	// Both are killed, and neither sees the other's end: the program is stopped before. To stop the
	// guard would not do, because the kernel continues it when its parent ends.
	holder.signal(syscall.SIGSTOP)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", holder.cmd.Process.Pid))
		return err == nil && strings.Contains(string(text), ") T ")
	}, hang, time.Millisecond)
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	require.NoError(t, holder.cmd.Process.Kill())
	holder.code()
	try := []string{"run", "-name", "a", "-try", "--", "true"}
	require.Equal(t, exitNotAcquired, start(t, url, try...).code())
	require.NoError(t, syscall.Kill(survivor, syscall.SIGKILL))
	holder.eof()
	require.Zero(t, start(t, url, try...).code())
}

func TestDescriptorsOfTheCallerReachTheCommand(t *testing.T) {
	t.Parallel()
	script := `"$@" 3>&1 4>&1 </dev/null`
	holder := startWith(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, fileStore(t), "run", "-name", "a", "--", "sh", "-c", "echo three >&3; echo four >&4")
	require.Equal(t, "three", holder.line())
	require.Equal(t, "four", holder.line())
	require.Zero(t, holder.code())
}

// asProcess1 starts the program as process 1 of a PID namespace of its own.
func asProcess1(t *testing.T, url string, args ...string) *process {
	return startWith(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"unshare", "-p", "-f", "--mount-proc", "--kill-child", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/usr/bin/unshare"
	}, url, args...)
}

func TestProcess1LeavesNoZombies(t *testing.T) {
	t.Parallel()
	// A zombie may be there for a moment.
	look := `i=0; while found=$(grep -ls "^State:.Z" /proc/[0-9]*/status); [ "$found" ] && [ $i -lt 100 ]; do
	sleep 0.1; i=$((i+1)); done; echo ${found:-none}; `
	script := `(sleep 0.1 &); sleep 0.5; ` + look
	require.Equal(t, "none", asProcess1(t, fileStore(t), "run", "-name", "a", "--", "sh", "-c", script).line())
	// Here the first command leaves its processes to process 1.
	script = look + `sleep 0.1 & exit 1`
	leader := asProcess1(t, fileStore(t), "lead", "-pause", "500ms", "-name", "a", "--", "sh", "-c", script)
	for range 3 {
		require.Equal(t, "none", leader.line())
	}
}

func TestProcess1EndsSoonAfterALoss(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	script := `sleep 1000 & trap 'echo got TERM; exit 5' TERM; (sleep 1000 &); echo up; wait`
	holder := asProcess1(t, url, "run", "-name", "a", "-ttl", longTTL, "-grace", "1h", "--", "sh", "-c", script)
	require.Equal(t, "up", holder.line())
	require.Zero(t, start(t, url, "force", "-yes", "a").code())
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}
