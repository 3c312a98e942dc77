package filelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"

	"github.com/jucgo/locks"
)

// digits is the length of a counter in the file: the length of the greatest counter, so that a
// counter is never shorter than the counter before.
const digits = 20

// errReadOnly matches [fs.ErrPermission].
var errReadOnly = fmt.Errorf("the file is read-only: %w", fs.ErrPermission)

// nextToken increments the counter in the file, which is locked, and returns it. The counter is
// a decimal number of 20 digits and a line feed, which people can read. An empty file counts
// from 0.
func nextToken(d descriptor) (uint64, error) {
	if d.readOnly {
		return 0, errReadOnly
	}
	var room [digits + 2]byte
	n, err := d.ReadAt(room[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var last uint64
	if n > 0 {
		if n != digits+1 || room[digits] != '\n' {
			return 0, fmt.Errorf("%w: the lock file contains something other than a counter", locks.ErrForeign)
		}
		if last, err = strconv.ParseUint(string(room[:digits]), 10, 64); err != nil || last == math.MaxUint64 {
			return 0, fmt.Errorf("%w: the counter in the lock file cannot be incremented", locks.ErrForeign)
		}
	}
	text := fmt.Appendf(room[:0], "%0*d\n", digits, last+1)
	if _, err := d.WriteAt(text, 0); err != nil {
		return 0, fmt.Errorf("writing the token: %w", err)
	}
	return last + 1, nil
}
