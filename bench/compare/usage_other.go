//go:build !linux

package main

// usage is what this system does not tell: the processor time of everything on the machine.
type usage struct{}

func takeUsage() usage { return usage{} }

func (usage) since(usage) Busy { return Busy{} }

func processor() string { return "" }
