// Package lua has the Lua functions that scripts of several packages use.
package lua

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

//go:embed *.lua
var shared embed.FS

// Load returns the script in the file of the last name, with the libraries of the other names
// before it. The argument own has the package's files, in a folder lua. A library that is not there
// is shared.
func Load(own fs.FS, names ...string) *redisport.Script {
	var src strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(own, "lua/"+name+".lua")
		if err != nil {
			text, err = shared.ReadFile(name + ".lua")
		}
		if err != nil {
			panic(err) // a name of the caller is wrong
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--") {
				src.WriteString(line)
			}
		}
	}
	return redisport.NewScript(src.String())
}
