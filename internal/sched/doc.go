// Package sched is where the locks of this module announce their operations to a scheduler of
// tests, package lockstest/explore. The announcements are in the program only if it is built with
// the tag lockexplore. Without the tag, [On] is a constant false, and the compiler leaves out
// every call that stands behind it:
//
//	if sched.On {
//		sched.Begin("Lock", m)
//	}
//
// A lock announces each operation before its first step, in the exported method. An operation that
// can fail announces its outcome as well. internal/park announces waits and wake-ups, so a new
// kind of lock that parks there has its waits explored before it announces anything.
package sched
