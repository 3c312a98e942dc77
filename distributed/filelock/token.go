package filelock

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/jucgo/locks"
)

// digits is how long a counter is: what the greatest has, so that a longer number never is shorter on the file than the one
// before.
const digits = 20

// nextToken counts the counter in the file, which is locked, and returns it: a decimal number of 20 digits and an end of
// line, so that
// people can read it. An empty file counts from 0.
func nextToken(d descriptor) (uint64, error) {
	var room [digits + 2]byte
	n, err := d.ReadAt(room[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var last uint64
	if n > 0 {
		if n != digits+1 || room[digits] != '\n' {
			return 0, fmt.Errorf("%w: the lock file has something else in it than a counter", locks.ErrForeign)
		}
		if last, err = strconv.ParseUint(string(room[:digits]), 10, 64); err != nil || last == math.MaxUint64 {
			return 0, fmt.Errorf("%w: the lock file has something else in it than a counter that can be counted", locks.ErrForeign)
		}
	}
	text := fmt.Appendf(room[:0], "%0*d\n", digits, last+1)
	if _, err := d.WriteAt(text, 0); err != nil {
		return 0, fmt.Errorf("the token was not written: %w", err)
	}
	return last + 1, nil
}
