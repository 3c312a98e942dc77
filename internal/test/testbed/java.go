package testbed

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	building sync.Mutex
	built    = make(map[string]error) // by version
)

// Jars returns the class path of the Java side of a test's directory, with a version of the
// library that its pom.xml calls so. The first call builds it with Maven.
func Jars(tb testing.TB, library, version string) string {
	tb.Helper()
	mvn := Lookup(tb, "mvn")
	building.Lock()
	defer building.Unlock()
	err, known := built[version]
	if !known {
		for try := range 3 { // what is not here yet comes over a network
			time.Sleep(time.Duration(try) * 10 * time.Second)
			cmd := exec.Command(mvn, "-q", "-B", "-Dstyle.color=never", "-D"+library+".version="+version,
				"package", "dependency:copy-dependencies")
			var out []byte
			if out, err = cmd.CombinedOutput(); err == nil {
				break
			}
			err = fmt.Errorf("%w: %s", err, out)
		}
		built[version] = err
	}
	if err != nil {
		tb.Fatalf("build of the Java side: %v", err)
	}
	return filepath.Join("target", version, "jars", "*")
}
