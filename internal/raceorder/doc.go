// Package raceorder tells the race detector which holds of a read-write lock order their accesses.
//
// For the detector, atomic operations on one variable order all goroutines that perform them. The
// counting of readers would then order the readers of a lock, and the detector would not report two
// writes under the read lock that happen one after the other. Therefore a lock hides its operations
// on the counting word, and describes the order between holds itself, as sync.RWMutex does:
//
//	a release by a writer  ->  each later acquisition
//	a release by a reader  ->  each later acquisition by a writer
//
// The mutex of a queue still orders readers that had to wait.
package raceorder
