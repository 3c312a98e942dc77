package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/jucgo/locks/internal/test/testbed"
)

// blocks returns the code of a language in README.md. Its programs are in a new folder, where
// withlock is this program and the others do nothing.
func blocks(t *testing.T, language string) (codes []string, dir string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	dir = t.TempDir()
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		codes = append(codes, strings.ReplaceAll(string(found[1]), "/usr/local/bin", dir))
	}
	require.NotEmpty(t, codes)
	program := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, os.Args[0])
	for name, text := range map[string]string{
		"withlock": program, "backup.sh": "#!/bin/sh\necho \"backup of $LOCK_NAME\"\n", "scheduler": "#!/bin/sh\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	return codes, dir
}

func TestTheLineForCronMakesTheBackup(t *testing.T) {
	codes, dir := blocks(t, "crontab")
	require.Len(t, codes, 1)
	require.NotContains(t, codes[0], "%")
	lines := strings.Split(strings.TrimSpace(codes[0]), "\n")
	variable, _, _ := strings.Cut(lines[1], "=")
	fields := strings.SplitN(lines[2], " ", 7) // five of the time, and the user
	store := "sqlite:" + filepath.Join(dir, "locks.db")
	job := exec.Command("/bin/sh", "-c", fields[6])
	job.Env = []string{"PATH=/usr/bin:/bin", variable + "=" + store}
	out, err := job.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "backup of nightly\n", string(out))

	code, stdout, stderr := here("run", "-store", store, "-name", "nightly", "--",
		"env", variable+"="+store, "LOCK_NAME=", "/bin/sh", "-c", fields[6])
	require.Zero(t, code, "a backup elsewhere is no failure: %s", stderr)
	require.Empty(t, stdout)
}

func TestTheUnitsForSystemdAreValid(t *testing.T) {
	codes, dir := blocks(t, "ini")
	for _, code := range codes {
		name := regexp.MustCompile(`^# /etc/systemd/system/(\S+)`).FindStringSubmatch(code)
		require.NotNil(t, name, code)
		unit := filepath.Join(dir, name[1])
		require.NoError(t, os.WriteFile(unit, []byte(code), 0o600))
		out, err := exec.Command(testbed.Lookup(t, "systemd-analyze"), "verify", "--man=no", unit).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), filepath.Base(unit))
		command := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(code)
		runs(t, dir, strings.Fields(command[1]))
	}
}

func TestTheObjectsForKubernetesAreValid(t *testing.T) {
	codes, dir := blocks(t, "yaml")
	var pods []core.PodSpec
	for _, code := range codes {
		if strings.Contains(code, "kind: Deployment") {
			var d apps.Deployment
			require.NoError(t, yaml.UnmarshalStrict([]byte(code), &d))
			require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
			pods = append(pods, d.Spec.Template.Spec)
		} else {
			var c batch.CronJob
			require.NoError(t, yaml.UnmarshalStrict([]byte(code), &c))
			pods = append(pods, c.Spec.JobTemplate.Spec.Template.Spec)
		}
	}
	require.Len(t, pods, 2)
	for _, pod := range pods {
		c := pod.Containers[0]
		require.Equal(t, "WITHLOCK_STORE", c.Env[0].Name)
		runs(t, dir, append([]string{filepath.Join(dir, c.Command[0])}, c.Command[1:]...))
	}
}

// runs runs a command line of withlock, which must succeed.
func runs(t *testing.T, dir string, argv []string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "WITHLOCK_STORE=sqlite:" + filepath.Join(dir, "locks.db")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%q: %s", argv, out)
}
