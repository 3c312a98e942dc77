// Command locklab shows what locks do, by scenarios that run on the real locks of this module.
//
//	go run ./cmd/locklab                  run all scenarios, and write locklab.html
//	go run ./cmd/locklab list             list them
//	go run ./cmd/locklab run race aba     run some, with their timelines in the terminal
//	go run ./cmd/locklab docs DIR         write the chapters of the documentation, in both languages
//	go run ./cmd/locklab -lang zh         speak Chinese; LC_ALL, LC_MESSAGES and LANG choose, too
//
// The page needs nothing but a browser: no network, no server. It has both languages, and a switch.
// Every scenario checks what it teaches. A statement that times decide is not judged if other
// programs took the machine. The exit status is 1 if a scenario contradicted its text or ran out of
// time, or the results could not be written. It is 2 for a wrong command line, and 130 after an
// interruption.
//
// The locks between processes have a command of their own, ./cmd/locklab/distributed, because
// they need clients of their stores.
package main

import (
	"github.com/jucgo/locks/cmd/locklab/internal/cli"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

func main() { cli.Main(scenarios.Course) }
