//go:build !unix

package testbed

// lockFile does nothing here: run the packages that share a server one after the other.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
