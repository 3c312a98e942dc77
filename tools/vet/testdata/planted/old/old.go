// Package old is of another module, so that only facts about it are computed.
package old

import "fmt"

// Deprecated: use Logf.
func Log(text string) { Logf("%s", text) }

func Logf(format string, args ...any) { fmt.Printf(format, args...) }
