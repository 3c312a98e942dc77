package command

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestTheScriptsOfCompletionParse(t *testing.T) {
	for shell, script := range scriptOf {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				if shell == "bash" {
					t.Fatal(err)
				}
				t.Logf("no %s on this machine: nothing was parsed", shell)
				return
			}
			if out, err := exec.Command(path, "-n", filepath.Join("completion", script)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
