package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// suffix is what the files of a [Client] end in.
const suffix = ".lock"

// longest is how many bytes the encoding of a name may have before it is cut: file systems allow 255 for the whole.
const longest = 180

// kept is how much of an encoding that is cut is left, for people to recognise.
const kept = 96

// fileName returns the name of the file for the lock called name. It is one element of a path on every system, and differs
// for names that differ, also where a file system takes upper and lower case, or several spellings of a character, for the same.
//
// Lower-case letters, digits, '-', '_', and dots but the first byte's stand for themselves, and %XX for every other byte.
// The empty
// name is a lone %. The first letter of what Windows takes for a device, such as con, is written %XX. Of an encoding
// that is too long the beginning is kept, and %% and the name's SHA-256 follow. No other encoding has % before
// anything but two digits, so that these cannot be taken for one another.
func fileName(name string) string {
	const digits = "0123456789ABCDEF"
	if name == "" {
		return "%" + suffix
	}
	plain := true
	for i := range len(name) {
		if !stands(name, i) {
			plain = false
			break
		}
	}
	if plain && len(name) <= longest && !device(name) {
		return name + suffix
	}
	var b strings.Builder
	whole := true
	for i := range len(name) {
		n := 1
		escape := !stands(name, i) || i == 0 && device(name)
		if escape {
			n = 3
		}
		if b.Len()+n > longest {
			whole = false
			break
		}
		if escape {
			b.Write([]byte{'%', digits[name[i]>>4], digits[name[i]&15]})
		} else {
			b.WriteByte(name[i])
		}
	}
	if whole {
		return b.String() + suffix
	}
	head := b.String()[:kept]
	if i := strings.LastIndexByte(head, '%'); i > kept-3 { // not in the middle of %XX
		head = head[:i]
	}
	sum := sha256.Sum256([]byte(name))
	return head + "%%" + hex.EncodeToString(sum[:]) + suffix
}

// stands reports whether the i-th byte of name stands for itself.
func stands(name string, i int) bool {
	c := name[i]
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
}

// device reports whether Windows takes a file called name, with any extension, for a device.
func device(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}
