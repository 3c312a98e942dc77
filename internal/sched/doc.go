// Package sched is where the locks of this module announce their operations to a scheduler of
// tests, package lockstest/explore. The announcements are in the program only if it is built with
// the tag lockexplore. Without the tag, [Begin] and [Step] are empty and inlined, so nothing is
// left of a call whose arguments compute nothing. All other functions, calls in generic methods,
// and arguments that call a function stand behind [On], which is a constant false without the tag:
//
//	sched.Begin("Lock", m)
//	if sched.On {
//		defer sched.Tried[bool]("TryLock", m)(&ok)
//	}
//
// A lock announces each operation before its first step, in the exported method. An operation that
// can fail announces its outcome as well. internal/park announces waits and wake-ups, so a new
// kind of lock that parks there has its waits explored before it announces anything.
package sched
