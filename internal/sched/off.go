//go:build !lockexplore

package sched

import (
	"context"
	"time"
)

// On reports whether the locks announce their operations.
const On = false

// Begin does nothing in a program without the build tag.
func Begin(string, any) {}

// Step does nothing in a program without the build tag.
func Step() {}

// Enter does nothing in a program without the build tag.
func Enter(string, any) func() { return nil }

// Tried does nothing in a program without the build tag.
func Tried[T comparable](string, any) func(*T) { return nil }

// Asked does nothing in a program without the build tag.
func Asked(string, any) func(*error) { return nil }

// Parks does nothing in a program without the build tag.
func Parks(interface{ Unpark() }) {}

// Limited does nothing in a program without the build tag.
func Limited(time.Duration) {}

// Amount returns op in a program without the build tag.
func Amount(op string, _ int64) string { return op }

// Under does nothing in a program without the build tag.
func Under(context.Context) {}

// Woken does nothing in a program without the build tag.
func Woken() {}

// Explored returns false in a program without the build tag.
func Explored() bool { return false }

// Address returns address in a program without the build tag.
func Address(address uintptr) uintptr { return address }
