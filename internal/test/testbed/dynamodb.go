package testbed

import (
	"os/exec"
	"strings"
	"testing"
)

// StartKumo runs a kumo until the test ends, and returns it with its address. It talks as
// DynamoDB does, has no tables, and accepts every key. .ci/servers installs the server. Without
// it, the test is treated as by [Missing].
func StartKumo(tb testing.TB) (p *Process, addr string) {
	tb.Helper()
	p = Start(tb, exec.Command(Built(tb, "kumo-server")))
	return p, strings.TrimPrefix(p.Line(), "http://")
}
