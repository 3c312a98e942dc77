package natslock

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// maxKey is how many bytes a key has at most. A server accepts lines of 4096 bytes by default, in
// which the key stands next to the names of the stream and of a consumer.
const maxKey = 1024

const escape = '='

// keyOf returns the key of the lock called name. Other names have other keys. Letters, digits and
// the characters - _ / . stay. Each other byte is an equals sign and two hexadecimal digits. The
// same form stands for a dot that would make an empty token of a subject, and for the beginning of
// reserved keys.
func keyOf(name string) string {
	var key strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '.' && (i == 0 || i == len(name)-1 || name[i-1] == '.'),
			c == '_' && i == 0 && strings.HasPrefix(name, "_kv"),
			!plain(c):
			fmt.Fprintf(&key, "%c%02X", escape, c)
		default:
			key.WriteByte(c)
		}
	}
	return key.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_/.", c) >= 0
}

// nameOf returns the name of the lock that key belongs to, and whether there is such a lock.
func nameOf(key string) (string, bool) {
	var name strings.Builder
	for rest := key; ; {
		before, after, found := strings.Cut(rest, string(escape))
		name.WriteString(before)
		if !found {
			return name.String(), keyOf(name.String()) == key
		}
		if len(after) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(after[:2])
		if err != nil {
			return "", false
		}
		name.Write(c)
		rest = after[2:]
	}
}

// CheckName refuses names whose keys are too long.
func (d *documents) CheckName(name string) error {
	if n := len(keyOf(name)); n > maxKey {
		return fmt.Errorf("the name has %d bytes as a key, at most %d are allowed", n, maxKey)
	}
	return nil
}
