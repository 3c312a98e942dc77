// Package park gives one goroutine a place to wait: the permit of
// java.util.concurrent.locks.LockSupport, for a place instead of a thread.
//
// A wait that nothing can cut short has two ways to block, of which the build takes one:
//
//   - The runtime's own gopark and goready, by linkname, for the versions of Go that are known to have them as
//     they are used here. They take a third less time than the best public way.
//   - A sync.Cond, everywhere else: with other versions of Go, under the race detector and the other sanitizers,
//     which do not see through gopark, with GOEXPERIMENT=goroutineleakprofile, which finds a leaked waiter by
//     what the Cond tells it, and with the build tag locks_nolinkname. Of the public ways to block it is
//     the cheapest that can be kept and used again: it needs no table of addresses, as semaphores
//     do, and allocates nothing, and is never bound to a testing/synctest bubble, whereas a channel made in one stays
//     bound for good and would kill the process when a pool hands it to a goroutine outside.
//
// Either way the goroutine counts as durably blocked in a bubble, so virtual time goes on; a stack trace
// says sync.Cond.Wait; and the block profile has the wait.
//
// A wait that a context or a timer can cut short is a select on a fresh channel, which
// is never used again.
//
// Like everything that blocks durably, a goroutine parked inside a bubble has to be unparked from inside it: the
// runtime may end the process otherwise. One that is parked outside may be unparked from anywhere, unless its wait
// can be cut short.
package park

// Open makes p selectable until it is closed, and returns the channel that delivers its
// permits. It must happen before anybody else can get at p.
func (p *Place) Open() <-chan struct{} {
	p.c = make(chan struct{}, 1)
	return p.c
}

// Park returns as soon as there is a permit, and takes it. Only one goroutine
// may be in Park at a time. Users must loop: a permit says that it is worth
// looking again, not why.
func (p *Place) Park() {
	if p.c != nil {
		<-p.c
		return
	}
	p.Init()
	p.Begin()
	p.Wait()
	p.End()
}

// Unpark makes a permit available if there is none, and wakes the goroutine
// parked here, if any. Two calls make one permit. It may be called by anybody, and
// touches nothing of p any more once the parked goroutine could have returned.
func (p *Place) Unpark() {
	if p.c != nil {
		select {
		case p.c <- struct{}{}:
		default:
		}
		return
	}
	p.wake()
}

// Reset makes p as good as new. It must happen after anybody else could get at p.
func (p *Place) Reset() {
	p.End()
	p.c = nil
	p.forget()
}
