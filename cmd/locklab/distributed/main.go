// Command distributed is the part of locklab about locks between processes. It needs no server:
// the stores are inside.
//
//	go run ./cmd/locklab/distributed               run all, and write locklab-distributed.html
//	go run ./cmd/locklab/distributed list          list them
//	go run ./cmd/locklab/distributed run fencing   run some, with their timelines in the terminal
//	go run ./cmd/locklab/distributed docs DIR      write the chapters of the documentation
//
// Flags and exit codes are the same as of locklab. It is a module of its own, so that no user of
// the locks of one process gets the clients of stores with them.
package main

import (
	"github.com/jucgo/locks/cmd/locklab/distributed/internal/scenarios"
	"github.com/jucgo/locks/cmd/locklab/internal/cli"
)

func main() { cli.Main(scenarios.Course) }
