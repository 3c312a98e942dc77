// Package racetest checks what the race detector reports under a read-write lock. It does so in
// tests that are built with the race detector.
package racetest
