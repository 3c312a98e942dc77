//go:build !linux

package filelock

import (
	"os"

	"github.com/jucgo/locks"
)

// These systems do not tell which processes hold a lock or wait for it.

func markable(*os.File) bool                   { return false }
func (descriptor) mark()                       {}
func (descriptor) unmark()                     {}
func (descriptor) marked() (waits, known bool) { return false, false }

func holdersOf(fileID) []locks.Party { return nil }
