package fakestore

// Flaw is one mistake of a store. The zero Flaw is none.
type Flaw string

// The flaws of the exclusion.
const (
	NoExclusion     Flaw = "the lock is given to every acquirer"
	AcquireNoLock   Flaw = "two requests at once get a free lock"
	NamesCut        Flaw = "names that begin alike are one lock"
	NamesFold       Flaw = "upper and lower case of a name are one lock"
	NamesShort      Flaw = "names are cut after 32 bytes"
	NamesPlain      Flaw = "only letters and digits of a name count"
	NamesUTF16      Flaw = "characters beyond U+FFFF are one character"
	NeverFree       Flaw = "a lapsed lock is never taken over"
	FirstSight      Flaw = "the first refused request ends the hold"
	GivesOften      Flaw = "every tenth request for a held lock gets it"
	ClientHolds     Flaw = "a hold belongs to its client, whatever the acquisition"
	SerialHolds     Flaw = "a hold belongs to the number of its acquisition, whatever the client"
	RefusedLater    Flaw = "a release gives the lock to a request that was refused before"
	RepeatFrees     Flaw = "a repeated Acquire of the holder frees the lock"
	RefusalsProlong Flaw = "each refused request prolongs the hold"
	Spurious        Flaw = "every fifth acquisition of a free lock is refused"
	SometimesFails  Flaw = "every fifth acquisition fails"
	AcquireTwice    Flaw = "Acquire sends its request again 10 ms later"
	AcquireCounts   Flaw = "an acquisition that asked twice has to release twice"
	HoldsTwice      Flaw = "two requests at once make two holds of an acquisition, and a release ends one"
	RefusalFrees    Flaw = "a refused Acquire frees what another request of its acquisition got"
	LateSteals      Flaw = "a late Acquire of a former holder takes the lock from its holder"
	WaitTooLong     Flaw = "Reply.Wait is an hour too long"
	WaitWhole       Flaw = "Reply.Wait is the whole lease, whatever is left of it"
	WaitHalf        Flaw = "Reply.Wait is half of what is left of the lease"
	RefusedAfterAll Flaw = "each error matches ErrRefused, also after the server has carried it out"
	RefusedEnqueue  Flaw = "each error of Enqueue matches ErrRefused"
	RefusedRelease  Flaw = "each error of Release matches ErrRefused"
	FailureRefuses  Flaw = "an Acquire that fails is reported as a refusal"
	FailureFindsNot Flaw = "a Lookup that fails says that the lock is not held"
	FailureLoses    Flaw = "a Renew that fails says that the hold is lost"
	FailureReleases Flaw = "a Release that fails says that the lock was not held"
	IgnoresContext  Flaw = "a request without an answer outlasts its context"
	RepliesMix      Flaw = "two requests of a client at once get the same reply"
	OverwritesValue Flaw = "a value that is no lock is overwritten"
)

// The flaws of semaphores.
const (
	PermitTooMany   Flaw = "a semaphore gives one permit more than it has"
	PermitTooFew    Flaw = "a semaphore never gives its last permit"
	PermitsWeighOne Flaw = "each acquisition takes one permit, however many it asks for"
	PermitsOneByOne Flaw = "a semaphore has one holder at a time"
)

// The flaws of the time.
const (
	FastClock       Flaw = "the server's clock runs 10 % fast"
	SlowClock       Flaw = "the server's clock runs 10 % slow"
	LeaseFixed      Flaw = "each lease lasts for ten seconds"
	LeaseSeconds    Flaw = "a lease is rounded down to whole seconds"
	ClientsClock    Flaw = "the end of a lease is compared with the wall clock of the client that asks"
	RenewLies       Flaw = "Renew says true and prolongs nothing"
	RenewAdds       Flaw = "Renew adds the lease to what is left of it"
	RenewFirst      Flaw = "Renew prolongs the first of its holds only"
	RenewHalf       Flaw = "Renew prolongs by half of the lease"
	RenewOnce       Flaw = "only the first renewal of a hold prolongs it"
	RenewLate       Flaw = "Renew gives a hold back that has lapsed, if no other came in between"
	RenewStops      Flaw = "Renew prolongs nothing that comes after a lost hold"
	RenewAny        Flaw = "Renew prolongs the lock for any acquisition"
	RenewAcquires   Flaw = "Renew acquires a free lock anew"
	RenewRevives    Flaw = "Renew gives a lock back to its former holder"
	RenewDenies     Flaw = "Renew says false of a hold that it has prolonged"
	RenewMixes      Flaw = "Renew answers in the opposite order"
	ReleaseAllStops Flaw = "ReleaseAll releases the first two of its holds only"
	ReleaseAllFrees Flaw = "ReleaseAll frees the locks, whoever holds them"
	LongTerm        Flaw = "Term is twice as long as the server's"
	SessionEnds     Flaw = "the session ends although it is kept alive"
	SessionStays    Flaw = "the end of a session frees nothing"
	SessionKeeps    Flaw = "Lost frees nothing of a session that goes on"
)

// The flaws of Lookup and Release.
const (
	LookupNo         Flaw = "Lookup always says no"
	LookupYes        Flaw = "Lookup always says yes"
	LookupAny        Flaw = "Lookup says yes to any acquisition while the lock is held"
	LookupToken      Flaw = "Lookup tells the newest token"
	LookupPlace      Flaw = "Lookup says yes to a waiter"
	LookupAcquires   Flaw = "Lookup acquires a free lock"
	LookupFrees      Flaw = "Lookup frees the hold of another acquisition"
	AnyoneFrees      Flaw = "Release frees the hold of any acquisition"
	ReleaseLooks     Flaw = "Release looks first, and then deletes what is there by then"
	ReleaseKeeps     Flaw = "Release leaves the lock"
	ReleaseAsync     Flaw = "Release is answered 20 ms before it is carried out"
	ReleasedAlways   Flaw = "Released.Held is always true"
	ReleasedNever    Flaw = "Released.Held is always false"
	AwaitedNever     Flaw = "Released.Awaited is always false"
	ReleaseFailsOnce Flaw = "the first Release of each hold fails and does nothing"
)

// The flaws of tokens.
const (
	TokenSeven    Flaw = "the token is always 7"
	TokenPairs    Flaw = "two holders in a row have the same token"
	TokenRestarts Flaw = "the token restarts from 1 after a takeover"
	TokenLapsed   Flaw = "a takeover has the token of the lapsed hold"
	TokenOfClient Flaw = "each client counts tokens of its own"
	TokenBroken   Flaw = "the token is lower after a break"
)

// The flaws of notices.
const (
	WatchMute    Flaw = "a watch never fires"
	WatchHalf    Flaw = "every second notice is lost"
	WatchLate    Flaw = "a watch begins a while after Watch has returned"
	ListensNot   Flaw = "Reply.Listening is true without a watch"
	WatchAgain   Flaw = "the second Watch of an acquisition is its first one, which is closed"
	WatchOnce    Flaw = "a release wakes the watch that began first, which may wait no more"
	WatchCloses  Flaw = "a notice closes the channel"
	WatchesEnd   Flaw = "the end of a watch ends all watches of its client"
	WakesEarly   Flaw = "Release wakes the waiters 20 ms before it frees the lock"
	BreakMute    Flaw = "Break wakes nobody"
	ProberMute   Flaw = "Contended is always false"
	ProberHolder Flaw = "Contended is true only for a free lock"
)

// The flaws of queues.
const (
	QueueLIFO     Flaw = "the last waiter is first"
	QueueForgets  Flaw = "a waiter that asks again goes to the end of the queue"
	QueueBarges   Flaw = "a free lock is given to any waiter that asks"
	QueueWakes    Flaw = "a release wakes the last waiter, not the first one"
	LeaveKeeps    Flaw = "Leave keeps the place"
	LeaveFirst    Flaw = "Leave removes the first place, whatever its acquisition"
	LeaveMute     Flaw = "a first waiter that leaves a free lock wakes nobody"
	QueueSeldom   Flaw = "each fourth release makes the last waiter the first"
	LeaveFrees    Flaw = "Leave frees the hold of its acquisition"
	PlaceBrief    Flaw = "a place lasts for 100 ms"
	PlacesTwice   Flaw = "two requests of a waiter at once take two places, of which one stays"
	PlaceOfTry    Flaw = "Acquire leaves a place in the queue"
	PlaceForever  Flaw = "the place of a dead waiter stays"
	PlaceOfHolder Flaw = "the place of a waiter stays when it gets the lock"
)

// The flaws of Break, Inspect and NotifyLoss.
const (
	BreakRenews    Flaw = "the former holder's renewals succeed after a break"
	BreakLies      Flaw = "Break reports the opposite"
	BreakNothing   Flaw = "Break frees nothing"
	InspectFree    Flaw = "Inspect says that a held lock is free"
	InspectHeld    Flaw = "Inspect says that a free lock is held"
	InspectFrees   Flaw = "Inspect frees the lock"
	InspectOther   Flaw = "Inspect names another holder"
	InspectForgets Flaw = "Inspect forgets the waiters"
	InspectShared  Flaw = "Inspect says that an exclusive lock is shared"
	InspectToken   Flaw = "Inspect names the token after the holder's"
	InspectLeft    Flaw = "Inspect tells twice the time that is left"
	InspectCounts  Flaw = "Inspect counts the holder as a waiter"
	LossMute       Flaw = "NotifyLoss is told of no loss"
	LossFalse      Flaw = "NotifyLoss is told of a living hold when a waiter is refused"
	LossAll        Flaw = "NotifyLoss is told of all holds of a client when one is broken"
)

// The flaws of shared holds.
const (
	ReadersExclude Flaw = "readers exclude each other"
	ReaderIntrudes Flaw = "a reader ignores the writer"
	WriterIntrudes Flaw = "a writer ignores the readers"
	ReaderFreesAll Flaw = "the release of one reader frees all"
	ReaderStays    Flaw = "a dead reader stays while other readers renew"
	ReaderShortens Flaw = "the lease of a new reader counts for all readers"
	ReaderWakes    Flaw = "a release wakes one of the readers"
	ReadersLapse   Flaw = "the end of one reader's lease ends all"
)
