package filelock

import (
	"fmt"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
)

// holdersOf returns the processes that hold a lock of the file, as /proc/locks says. A line is
// like
//
//	7: FLOCK  ADVISORY  WRITE 4711 fd:01:131080 0 EOF
func holdersOf(id fileID) (holders []locks.Party) {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	place := fmt.Sprintf("%02x:%02x:%d", unix.Major(id.dev), unix.Minor(id.dev), id.ino)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 6 || words[1] != "FLOCK" || words[5] != place {
			continue
		}
		var p locks.Party
		if _, err := fmt.Sscan(words[4], &p.PID); err != nil || p.PID <= 0 {
			continue
		}
		p.Host, _ = os.Hostname()
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID)); err == nil {
			p.Label = strings.Map(printable, string(name))
		}
		holders = append(holders, p)
	}
	return holders
}

// printable drops characters that a label must not have.
func printable(r rune) rune {
	if unicode.IsControl(r) || r == unicode.ReplacementChar {
		return -1
	}
	return r
}
