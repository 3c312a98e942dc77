// Package scenarios has the lessons of the lab on the locks of one process, one in each file.
//
// To add one, add a file that registers a lab.Scenario; the file's name is the scenario's, with
// underscores for hyphens. The lines between "//lab:show" and "//lab:end" are what the reader
// is shown as the code of the scenario.
package scenarios

import (
	"embed"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed *.go fourlines/*.go
var sources embed.FS

// Course is all of them.
var Course = &lab.Course{
	Name:    "locklab",
	Command: "go run ./cmd/locklab",
	Title:   "The lock lab",
	Lead: "What locks do, watched on real ones. Everything on this page happened on the machine below, a " +
		"moment before " +
		"the page was written: the pictures are recordings, and the figures are measurements.",
	Lane:  "A lane is a goroutine",
	Page:  "locklab.html",
	Index: "README.md",
	Intro: `Each chapter is a scenario of the lab: it runs on the real locks of this module, checks what it
teaches, and fails if what it sees contradicts the text. Locks between processes have
[a lab of their own](distributed.md). The figures are those of your machine:`,
	Folder:  "cmd/locklab/internal/scenarios",
	Sources: sources,
}

func register(s lab.Scenario) bool { return Course.Register(s) }
