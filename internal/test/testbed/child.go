package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Role is the work of a process of the test's own binary. Its arguments are the arguments of
// [Child].
type Role func(args []string) error

const roleVariable = "LOCKS_TEST_ROLE"

// Play does in a process that [Child] started what its role is, and ends it. In any other
// process it does nothing. TestMain calls it first.
func Play(roles map[string]Role) {
	name, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	role := roles[name]
	if role == nil {
		fmt.Fprintln(os.Stderr, "no such role:", name)
		os.Exit(2)
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child starts a process of the test's own binary in a role. Its standard error is the test's.
func Child(tb testing.TB, role string, args ...string) *Process {
	tb.Helper()
	return Start(tb, ChildCommand(tb, role, args...))
}

// ChildCommand returns what Child starts, for a caller that starts it by another program.
func ChildCommand(tb testing.TB, role string, args ...string) *exec.Cmd {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
