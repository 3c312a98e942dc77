//go:build !race

package fair

// order tells the race detector, in the other variant, which holds order their accesses.
type order struct{}

func (*order) ignore()       {}
func (*order) heed()         {}
func (*order) afterWrites()  {}
func (*order) afterAll()     {}
func (*order) releaseWrite() {}
func (*order) releaseRead()  {}
