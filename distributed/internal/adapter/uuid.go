package adapter

import (
	"crypto/rand"
	"fmt"
)

// NewUUID returns a random UUID of a version. Version 8 is free for any use, and 4 is the usual
// version.
func NewUUID(version byte) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
