// Command withlock runs a command under a lock of any store, keeps a command running on the leader
// of several machines, and shows and frees locks:
//
//	export WITHLOCK_STORE=redis://localhost:6379/0
//	withlock run -name nightly -try -- ./backup.sh
//	withlock lead -name scheduler -- ./scheduler
//	withlock who nightly
//	withlock ls
//	withlock force -yes nightly
//	withlock watch
//
// See the README for the exit codes and for the effects of a lost lock. Package command makes a
// smaller withlock for some of the stores.
package main

import (
	"github.com/jucgo/locks/cmd/withlock/command"
	_ "github.com/jucgo/locks/distributed/open/all"
)

//go:generate sh -c "LC_ALL=C go run . man > withlock.1"

func main() { command.Main() }
