// Package scenarios has the lessons of the lab on locks between processes, one in each file.
//
// They are added as those of one process are, see package scenarios of locklab.
package scenarios

import (
	"embed"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed *.go
var sources embed.FS

// Course is all of them.
var Course = &lab.Course{
	Name:    "distributed",
	Command: "go run ./cmd/locklab/distributed",
	Title:   lab.T("The lock lab: between processes"),
	Lead: lab.T("What distributed locks do, the wrong ones and the right ones. The stores are inside this " +
		"program: miniredis, a Redis server, " +
		"or several of them, whose clock is the real one, and SQLite, in a temporary file. Every process " +
		"of the pictures is a client with " +
		"connections of its own. What is on this page happened a moment before it was written."),
	Lane:  lab.T("A lane is a process"),
	Page:  "locklab-distributed.html",
	Index: "distributed.md",
	Intro: lab.T(`Each chapter is a scenario. It runs the locks of this module, and the wrong ones that they
replace, on Redis servers or an SQLite database inside the program. Where there is no such store it runs on a
model, and says so. It checks what it teaches. Locks in one process have [a lab of their own](README.md). The
figures are those of your machine:`),
	Folder:  "cmd/locklab/distributed/internal/scenarios",
	Sources: sources,
}

func register(s lab.Scenario) bool { return Course.Register(s) }
