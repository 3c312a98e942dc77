//go:build unix && !linux

package command

import (
	"os"
	"syscall"
)

func thisProgram() (string, error) { return os.Executable() }

// Such a system tells neither the command of the guard's end, nor the guard of all that the command
// has started. The guard reaches the command and its process group.

type relative struct{ pid, group int }

func endWithParent(*syscall.SysProcAttr) {}
func adopt()                             {}
func descendants() []relative            { return nil }
