package redlock

import (
	"embed"

	"github.com/jucgo/locks/distributed/redislock/internal/lua"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	voteAcquire = lua.Load(sources, "lib_look", "lib_take", "vote_acquire")
	voteRelease = lua.Load(sources, "lib_typed", "vote_release")
)
