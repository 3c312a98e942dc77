//go:build !linux

package main

// processor returns nothing: this system does not name its processor in a file.
func processor() string { return "" }
