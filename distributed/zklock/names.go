package zklock

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jucgo/locks"
)

// maxName is how many bytes the name of a lock may have: enough for every name that is one.
const maxName = 1024

// The parts of the names of nodes. Curator has "protected" names, by which the creator of a node finds it again if it did not
// get the answer: _c_, a UUID, a dash. What follows is the kind of lock, and ten digits.
const (
	protection = "_c_"
	lockName   = "lock-"
	leaseName  = "lease-"
	readName   = "__READ__"
	writeName  = "__WRIT__"
	locksDir   = "/locks"
	leasesDir  = "/leases"
)

// cleanName returns the path of the lock called name, which begins with a slash whether name does or not.
func cleanName(namespace, name string) (string, error) {
	path := "/" + strings.TrimPrefix(name, "/")
	if n := len(path) - 1; n > maxName {
		return "", fmt.Errorf("zklock: name of a lock has %d bytes, at most %d are allowed", n, maxName)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return "", fmt.Errorf("zklock: name %q of a lock is empty or has an empty part", name)
		case ".", "..":
			return "", fmt.Errorf("zklock: name %q of a lock has the part %q", name, part)
		}
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, forbidden) {
		return "", fmt.Errorf("zklock: name %q of a lock has characters that ZooKeeper does not allow", name)
	}
	path = namespace + path
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return "", errors.New("zklock: what is below /zookeeper belongs to ZooKeeper")
	}
	return path, nil
}

func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:], b[:4])
	hex.Encode(text[9:], b[4:6])
	hex.Encode(text[14:], b[6:8])
	hex.Encode(text[19:], b[8:10])
	hex.Encode(text[24:], b[10:])
	for _, i := range []int{8, 13, 18, 23} {
		text[i] = '-'
	}
	return string(text[:])
}

// sequence returns what follows the last kind in a node's name, if that is a number as ZooKeeper appends it: ten digits, and a
// minus sign in front when the counter has run over. Numbers are compared as texts, as Curator does it.
func sequence(name, kind string) (seq string, ok bool) {
	i := strings.LastIndex(name, kind)
	if i < 0 {
		return "", false
	}
	seq = name[i+len(kind):]
	digits := strings.TrimPrefix(seq, "-")
	if len(digits) != 10 || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	return seq, true
}

// recipe is what a node in a queue is for.
type recipe int

const (
	mutex recipe = iota
	reading
	writing
)

// kind returns what is in front of the number in the node's name.
func (r recipe) kind() string {
	switch r {
	case reading:
		return readName
	case writing:
		return writeName
	}
	return lockName
}

// errNoOwn says that the own node is not among the children.
var errNoOwn = errors.New("own node is gone")

// standing returns which of children own has to wait for: the nearest before it that excludes it, or "" if own's turn has
// come; and how many before it do. What is no node of such a lock is ignored; nodes of a lock of
// another kind are an error matching locks.ErrForeign.
//
// A mutex and a writer wait for everyone before, a reader for writers only. The nearest will do: when it has gone, the
// children are asked for again.
func standing(children []string, own string, r recipe) (before string, n int, err error) {
	mine, found := "", false
	for _, c := range children {
		if c == own {
			mine, found = sequence(own, r.kind())
		}
	}
	if !found {
		return "", 0, errNoOwn
	}
	before, n, err = last(children, r, mine)
	if err == nil && strings.HasPrefix(mine, "-") {
		// The counter of the directory is at its end, and those who came later sort before those who hold.
		err = errors.New("zklock: the numbers in the lock's directory are used up: it has to be made anew")
	}
	return before, n, err
}

// last returns the last of children before the number mine that excludes a recipe, or the last of all if mine is "", and of how
// many it is the last.
func last(children []string, r recipe, mine string) (before string, n int, err error) {
	nearest := ""
	for _, c := range children {
		var seq string
		var ok bool
		if r == mutex {
			if _, w := sequence(c, writeName); w {
				return "", 0, foreign(c)
			} else if _, rd := sequence(c, readName); rd {
				return "", 0, foreign(c)
			}
			seq, ok = sequence(c, lockName)
		} else {
			if _, l := sequence(c, lockName); l {
				return "", 0, foreign(c)
			}
			if seq, ok = sequence(c, writeName); !ok && r == writing {
				seq, ok = sequence(c, readName)
			}
		}
		if !ok || mine != "" && seq >= mine {
			continue
		}
		n++
		if seq > nearest {
			nearest, before = seq, c
		}
	}
	return before, n, nil
}

func foreign(child string) error {
	return fmt.Errorf("%w: node %q of another kind of lock", locks.ErrForeign, child)
}

// holders returns who of children holds the lock at present: the first, and the readers after it if it is one.
func holders(children []string) (first []string) {
	type entry struct {
		seq, name string
		read      bool
	}
	var all []entry
	for _, c := range children {
		for _, kind := range []string{lockName, readName, writeName} {
			if seq, ok := sequence(c, kind); ok {
				all = append(all, entry{seq, c, kind == readName})
			}
		}
	}
	until := "" // the first that is no reader
	for _, e := range all {
		if !e.read && (until == "" || e.seq < until) {
			until = e.seq
		}
	}
	for _, e := range all {
		if e.read && (until == "" || e.seq < until) {
			first = append(first, e.name)
		}
	}
	if len(first) > 0 {
		return first
	}
	for _, e := range all {
		if e.seq == until {
			first = append(first, e.name)
		}
	}
	return first
}
