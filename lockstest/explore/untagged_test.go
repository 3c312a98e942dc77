//go:build !lockexplore

package explore

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTestsOfThisPackagePassWithTheTag(t *testing.T) {
	binary, err := tagged()
	require.NoError(t, err)
	out, err := exec.Command(binary, "-test.count=1", "-test.skip=^TestRun|^Example").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
