package zklock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jucgo/locks"
)

// maxName is how many bytes the name of a lock may have.
const maxName = 1024

// maxRune is the last character that a name may have. Later characters are two surrogates in
// UTF-16, the encoding of Java, and ZooKeeper refuses surrogates.
const maxRune = 0xffff

// The parts of the names of nodes. Curator protects a name by "_c_", a UUID and a dash: the creator
// of a node finds its node by this prefix if the answer was lost. The kind of lock and ten digits
// follow.
const (
	protection  = "_c_"
	lockPrefix  = "lock-"
	leasePrefix = "lease-"
	readPrefix  = "__READ__"
	writePrefix = "__WRIT__"
	locksDir    = "/locks"
	leasesDir   = "/leases"
)

// cleanName returns the path of the lock called name. A slash in front of name makes no
// difference.
func cleanName(namespace, name string) (string, error) {
	path := "/" + strings.TrimPrefix(name, "/")
	if n := len(path) - 1; n > maxName {
		return "", fmt.Errorf("the name has %d bytes: at most %d are allowed", n, maxName)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return "", errors.New("the name is empty or has an empty part")
		case ".", "..":
			return "", fmt.Errorf("the name has the part %q", part)
		}
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, forbidden) {
		return "", errors.New("the name has characters that ZooKeeper does not allow")
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r > maxRune }) {
		return "", errors.New("the name has characters beyond U+FFFF, such as emoji, that ZooKeeper does not allow")
	}
	path = namespace + path
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return "", errors.New("the name is below /zookeeper, which belongs to ZooKeeper")
	}
	return path, nil
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

// sequence returns the number after the last prefix in a node's name, in the form in which
// ZooKeeper appends it: ten digits, after a minus sign when the counter has run over. Numbers are
// compared as texts, as in Curator.
func sequence(name, prefix string) (seq string, ok bool) {
	i := strings.LastIndex(name, prefix)
	if i < 0 {
		return "", false
	}
	seq = name[i+len(prefix):]
	digits := strings.TrimPrefix(seq, "-")
	if len(digits) != 10 || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	return seq, true
}

// mode is the purpose of a node in a queue.
type mode int

const (
	mutexMode mode = iota
	readMode
	writeMode
)

// prefix returns the text before the number in the node's name.
func (m mode) prefix() string {
	switch m {
	case readMode:
		return readPrefix
	case writeMode:
		return writePrefix
	}
	return lockPrefix
}

// errNoOwn says that an own node is gone.
var errNoOwn = errors.New("own node is gone")

// standing returns the child that own must wait for: the nearest node before own that excludes it,
// or "" if it is own's turn. standing ignores unknown nodes. A node of another kind of lock is an
// error matching locks.ErrForeign.
//
// A mutex and a writer wait for every node before them, a reader for writers only. Waiting for the
// nearest node is enough: when it has gone, the client asks for the children again.
func standing(children []string, own string, m mode) (before string, err error) {
	seq, ok := sequence(own, m.prefix())
	if !ok || !slices.Contains(children, own) {
		return "", errNoOwn
	}
	before, err = last(children, m, seq)
	if err == nil && strings.HasPrefix(seq, "-") {
		// The counter of the directory has run over: new nodes sort before the holders' nodes.
		err = errors.New("the numbers in the lock's directory are used up: it has to be made anew")
	}
	return before, err
}

// last returns the last child before the number seq that excludes a node of mode m. If seq is "",
// it returns the last child that excludes such a node.
func last(children []string, m mode, seq string) (before string, err error) {
	nearest := ""
	for _, c := range children {
		s, ok, err := excludes(c, m)
		if err != nil {
			return "", err
		}
		if ok && (seq == "" || s < seq) && s > nearest {
			nearest, before = s, c
		}
	}
	return before, nil
}

// excludes returns the number of child if child excludes a node of mode m behind it.
func excludes(child string, m mode) (seq string, ok bool, err error) {
	lock, isLock := sequence(child, lockPrefix)
	read, isRead := sequence(child, readPrefix)
	write, isWrite := sequence(child, writePrefix)
	switch {
	case m == mutexMode && (isRead || isWrite), m != mutexMode && isLock:
		return "", false, fmt.Errorf("%w: node %q of another kind of lock", locks.ErrForeign, child)
	case isLock:
		return lock, true, nil
	case isWrite:
		return write, true, nil
	}
	return read, isRead && m == writeMode, nil
}

// holders returns the nodes of the holders: the first node, or the readers before the first other
// node.
func holders(children []string) (names []string) {
	type entry struct {
		seq, name string
		read      bool
	}
	var all []entry
	for _, c := range children {
		for _, prefix := range []string{lockPrefix, readPrefix, writePrefix} {
			if seq, ok := sequence(c, prefix); ok {
				all = append(all, entry{seq, c, prefix == readPrefix})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.seq, b.seq) })
	reading := true
	for _, e := range all {
		if e.seq != all[0].seq && !(reading && e.read) {
			break
		}
		reading = reading && e.read
		names = append(names, e.name)
	}
	return names
}
