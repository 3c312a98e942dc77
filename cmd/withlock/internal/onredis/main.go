// Command onredis is withlock for Redis alone, the program that the README shows.
package main

import (
	"github.com/jucgo/locks/cmd/withlock/command"
	_ "github.com/jucgo/locks/distributed/redislock/redisopen"
)

func main() { command.Main() }
