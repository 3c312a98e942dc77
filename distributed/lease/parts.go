package lease

// This page is for maintainers: the parts of a client, the order of their mutexes, and the life of
// a hold.
//
// # Parts
//
//	part         file         owns                                        calls, besides base
//	Mutex        mutex.go     the name of a lock, and its kind            localQueue, acquisition
//	localQueue   queue.go     the turns of a name in this process, its    releaser
//	                          hold, and which goroutine asks the store
//	handoff      handoff.go   whether the lock is handed off here         none
//	acquisition  acquire.go,  the requests of one owner until it has the  localQueue, releaser,
//	             undo.go      lock, or leaves nothing behind              schedule
//	grant        grant.go     until when a hold is valid, and why not     none
//	schedule     renewal.go   when each grant is renewed, and who hears   grant; releaser for
//	                          of its loss                                 what is too late
//	hold         hold.go      nothing: a grant in the hands of one owner  grant, schedule
//	releaser     release.go   the requests that give grants back, and     schedule
//	                          requests that undo unanswered requests
//	base         base.go      the store, the options, the clock, the jobs none
//	Client       client.go    the parts, from New to Close                all
//
// How is a hold renewed, and how does its holder learn of a loss? Read grant.go, renewal.go and
// hold.go. How does a lock come to an owner? Read the steps in acquire.go, and queue.go.
//
// # Mutexes
//
// A goroutine acquires the mutexes in this order, and at most one of the last three at a time:
//
//	localQueue.mu    what the owners of one name share
//	schedule.mu      never together with localQueue.mu
//	grant.mu         the time of one hold
//	localQueues.mu, jobs.mu, releaser.mu
//
// None of them is held during a request to the store. The turn of a localQueue is not such a mutex.
// Owners wait for their turn as long as others hold the lock, without holding a mutex.
//
// # Contexts
//
// A caller's ctx may be a type of the program, and its methods may wait for another goroutine that
// waits for the same lock. No method of ctx is called by a goroutine that holds a mutex of the
// list, or that has a turn. [adapter.End] is the end of ctx meanwhile. [Mutex.explain] asks for the
// error when the turn is over. Value is an exception: a store's client asks for its own values,
// such as the span of a trace, during a request.
//
// # The life of a hold
//
//	state     grant     local queue     comes by             ends by
//	asked     none      busy            start                granted: held
//	                                                         refused: asked again, or undone
//	held      valid     grant and hold  granted, or a turn   unlock: handed or released
//	                                    after handed         lose, time: lost
//	handed    valid     grant alone     unlock, with a       the waiter's turn: held
//	                                    waiter here, and     the waiter has gone: released
//	                                    half a lease left    lose, time: lost
//	released  released  busy            release              the store's answer: gone
//	                                                         no answer: swept, then gone
//	lost      lost      as before       lose, time           unlock, or the next turn: gone, or swept
//	                                                         if the store may keep it, then gone
//	undone    none      busy for grace  no answer in time    the store's answer: gone
//
// A hold is lost by time, or because lose is called. The callers of lose are a renewal or an
// extension that finds the hold gone, a notice of the store, ForceUnlock, and Close. Whatever the
// cause, grant.lose closes the channel of Lost, once, and tell lets a Session know.
//
// A grant outlives the turns of its owners, and an extension belongs to one of them: hold.request
// asks for nothing once the hold is released. Two ends of a grant differ. It ends here at until, so
// that the store never ends it sooner. It is swept until atMost, so that the store never ends it
// later.
//
// The folder model has this life in Promela, with the mistakes that it excludes.
//
// # Words
//
//	release   an owner's hold is given back to the store
//	lose      a hold ends without its owner
//	undo      the lock or place that an acquisition without a hold may have in the store is given up
//	sweep     a release is repeated in the background, since a request to acquire or prolong has
//	          no answer
//	abandon   a lock that the store has not released in time is left to its Session
//	leave     a waiter gives its turn here, or its place there, to the next waiter
//	drop      a local queue has one user less
