// Package spin has locks that wait by trying again, and the backoff that such loops need.
//
// Spinning pays if whoever is waited for runs on another core and is done sooner than it takes to
// put a goroutine to sleep and to wake it, which is a few hundred nanoseconds. Past
// that it burns a core that somebody else could use, possibly the one who is waited for.
package spin
