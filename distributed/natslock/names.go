package natslock

import (
	"fmt"
	"strings"

	"github.com/jucgo/locks/distributed/internal/adapter"
)

// maxKey is how many bytes a key has at most. A server accepts lines of 4096 bytes by default, in
// which the key stands next to the names of the stream and of a consumer.
const maxKey = 1024

// keyOf returns the key of the lock called name. Other names have other keys. Letters, digits and
// the characters - _ / . stay. Each other byte is an equals sign and two hexadecimal digits. The
// same form stands for a dot that would make an empty token of a subject, and for the beginning of
// reserved keys.
func keyOf(name string) string {
	return adapter.Escape(name, '=', func(i int) bool {
		switch c := name[i]; {
		case c == '.':
			return i > 0 && i < len(name)-1 && name[i-1] != '.'
		case c == '_' && i == 0:
			return !strings.HasPrefix(name, "_kv")
		default:
			return plain(c)
		}
	})
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_/", c) >= 0
}

// nameOf returns the name of the lock that key belongs to, and whether there is such a lock.
func nameOf(key string) (string, bool) {
	name, ok := adapter.Unescape(key, '=')
	return name, ok && keyOf(name) == key
}

// CheckName refuses names whose keys are too long.
func (d *documents) CheckName(name string) error {
	if n := len(keyOf(name)); n > maxKey {
		return fmt.Errorf("the name has %d bytes as a key, at most %d are allowed", n, maxKey)
	}
	return nil
}
