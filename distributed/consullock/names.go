package consullock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// maxKey is the greatest length of a key in bytes. Keys are parts of URLs.
const maxKey = 1024

// keyOf returns the key of the lock called name, without the prefix. Other names have other keys.
// Letters, digits and the characters - _ . ~ / stay. Each other byte is an equals sign and two
// hexadecimal digits. The same form stands for bytes that a server would remove from a path. These
// are a slash at the beginning, at the end or behind another slash, and each dot of the parts . and
// .. between slashes. Percent signs would not do: some servers decode a path twice.
func keyOf(name string) string {
	return adapter.Escape(name, '=', func(i int) bool {
		switch c := name[i]; c {
		case '/':
			return i > 0 && i < len(name)-1 && name[i-1] != '/'
		case '.':
			return !isDots(partAt(name, i))
		default:
			return plain(c)
		}
	})
}

// partAt returns the part of name between slashes that has byte i.
func partAt(name string, i int) string {
	from := strings.LastIndexByte(name[:i], '/') + 1
	part, _, _ := strings.Cut(name[from:], "/")
	return part
}

func isDots(part string) bool { return part == "." || part == ".." }

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_~", c) >= 0
}

// isPrefix reports whether keys that begin with prefix need no escape for it.
func isPrefix(prefix string) bool { return keyOf(prefix+"x") == prefix+"x" && len(prefix) < maxKey/2 }

// nameOf returns the name of the lock with the key, and false if no lock can have the key.
func nameOf(key string) (string, bool) {
	name, ok := adapter.Unescape(key, '=')
	return name, ok && name != "" && keyOf(name) == key
}

// checkName returns why no lock can have the name, or nil.
func (s *store) checkName(name string) error {
	switch n := len(s.key(name)); {
	case name == "":
		return driver.Mark(errors.New("the name is empty"), driver.ErrRefused)
	case n > maxKey:
		return fmt.Errorf("the name has %d bytes as a key, at most %d are allowed", n, maxKey)
	}
	return nil
}
