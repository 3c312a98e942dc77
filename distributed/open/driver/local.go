package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jucgo/locks/distributed/lease"
)

// Local returns the path of a URL that names a file or a folder of this machine. The folder above
// it must exist: others do not use a mistyped path, or a file system that is not mounted.
func (o *Opening) Local() (string, error) {
	if strings.HasPrefix(o.Path, "~") {
		return "", Reason("a path with ~ has to be expanded: only a shell knows the folder, " +
			"and only at the start of a word. A file called ~ is written as ./~")
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("%w: %w", lease.ErrUnreachable, err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("%w: %s is not a directory", lease.ErrUnreachable, filepath.Dir(path))
	}
	return path, nil
}
