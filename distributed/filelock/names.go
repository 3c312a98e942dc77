package filelock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jucgo/locks/distributed/internal/adapter"
)

// suffix is the end of the names of a [Client]'s files.
const suffix = ".lock"

// longestName is how many bytes the encoding of a name may have before it is cut. File systems
// allow 255 bytes for a whole name.
const longestName = 180

// keptOfName is how much of an encoding that is cut stays, for people to recognise.
const keptOfName = 96

// fileName returns the name of the file of the lock called name. It is one element of a path on
// every system. Different names have different files, also on file systems that ignore case or
// equate several spellings of a character.
//
// Lower-case letters, digits, '-', '_', and dots except a leading one stay as they are. Every
// other byte becomes %XX. The empty name is a lone %. The first letter of a Windows device
// name, such as con, becomes %XX. An encoding that is too long keeps its beginning, followed by
// %% and the name's SHA-256. No other encoding has % before anything but two digits, so the
// three forms cannot be confused.
func fileName(name string) string {
	if name == "" {
		return "%" + suffix
	}
	text := adapter.Escape(name, '%', func(i int) bool { return isPlain(name, i) && (i > 0 || !isDevice(name)) })
	if len(text) <= longestName {
		return text + suffix
	}
	head := text[:keptOfName]
	if i := strings.LastIndexByte(head, '%'); i > keptOfName-3 { // not in the middle of %XX
		head = head[:i]
	}
	sum := sha256.Sum256([]byte(name))
	return head + "%%" + hex.EncodeToString(sum[:]) + suffix
}

// isPlain reports whether the i-th byte of name stays as it is.
func isPlain(name string, i int) bool {
	c := name[i]
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
}

// isDevice reports whether Windows takes a file called name, with any extension, for a device.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}

// nameOf returns the name of the lock whose file has this name. It reports false for a file that
// belongs to no lock, and for a name that was cut.
func nameOf(file string) (name string, ok bool) {
	text, ok := strings.CutSuffix(file, suffix)
	if !ok {
		return "", false
	}
	if text == "%" {
		return "", true
	}
	name, ok = adapter.Unescape(text, '%')
	return name, ok && fileName(name) == file
}

// Names returns the names of the locks in the directory that match pattern, sorted. The pattern has
// the syntax of [path.Match], and the empty pattern matches all names. A lock has a file from its
// first acquisition on, held or not. Names whose encoding has more than 180 bytes are missing: the
// name of such a file has only a hash of the lock's name. Names reads 1000 files at a time, until
// ctx ends.
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	op := fmt.Sprintf("filelock: list names in %q", c.dir)
	return adapter.Names(ctx, op, pattern, func(add func(name string)) error {
		dir, err := os.Open(c.dir)
		if err != nil {
			return err
		}
		defer dir.Close()
		for {
			if ctx.Err() != nil {
				return adapter.Ended(ctx)
			}
			entries, err := dir.ReadDir(1000)
			for _, e := range entries {
				if name, ok := nameOf(e.Name()); ok && e.Type().IsRegular() {
					add(name)
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
		}
	})
}
