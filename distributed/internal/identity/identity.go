// Package identity is the text by which the processes of this module describe themselves in a
// store: the label, the host and the process id.
package identity

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jucgo/locks"
)

// MaxLabel is how many bytes a label may have.
const MaxLabel = 256

// maxText is more than the longest text has.
const maxText = 4096

// text is the form in the store. Every field may be missing.
type text struct {
	Label string `json:"label,omitempty"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
}

// host is the name of this machine, or empty.
var host = func() string {
	name, err := os.Hostname()
	if err != nil || check(name) != nil {
		return ""
	}
	return name
}()

// Of returns the text that describes this process. An empty label stands for the host and the
// process id.
func Of(label string) (string, error) {
	if err := check(label); err != nil {
		return "", err
	}
	t := text{label, host, os.Getpid()}
	if label == "" {
		t.Label = t.Host + "/" + strconv.Itoa(t.PID)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// check returns why a label is refused, or nil.
func check(label string) error {
	switch {
	case len(label) > MaxLabel:
		return fmt.Errorf("label of %d bytes, at most %d are allowed", len(label), MaxLabel)
	case !utf8.ValidString(label):
		return fmt.Errorf("label %q, it must be UTF-8", label)
	case strings.ContainsFunc(label, unicode.IsControl):
		return fmt.Errorf("label %q, control characters are not allowed", label)
	}
	return nil
}

// Parse returns the process that a text describes. It returns false for any other text.
func Parse(s string) (p locks.Party, ok bool) {
	var t text
	if len(s) > maxText || json.Unmarshal([]byte(s), &t) != nil || check(t.Label) != nil || check(t.Host) != nil {
		return p, false
	}
	return locks.Party{Label: t.Label, Host: t.Host, PID: t.PID}, t != text{}
}

// Foreign returns the label of a holder or a waiter of another program, which has the name s in the
// store. It shortens s to the length of a label, and replaces characters that a label must not
// have.
func Foreign(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s[:min(len(s), MaxLabel)]), "")
	for len(s) > MaxLabel {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s
}

// Serial returns a number that it never returned before for this counter: the present time in
// microseconds since 1970, or the next number if this number is taken.
func Serial(counter *atomic.Uint64) uint64 {
	for {
		last := counter.Load()
		next := max(uint64(time.Now().UnixMicro()), last+1)
		if counter.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Times between which a number counts as one of Serial: the years 2000 and 2200.
const first, last = 946_684_800_000_000, 7_258_118_400_000_000

// Began returns the time in the name of an acquisition: a UUID of version 8, a colon, and a number
// of Serial. It is zero for any other name.
func Began(acquisition string) time.Time {
	client, serial, _ := strings.Cut(acquisition, ":")
	if len(client) != 36 || client[14] != '8' {
		return time.Time{}
	}
	n, err := strconv.ParseInt(serial, 10, 64)
	if err != nil || n < first || n > last {
		return time.Time{}
	}
	return time.UnixMicro(n)
}
