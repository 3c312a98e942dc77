// Package fakestore has a store of locks in memory, for tests of code that uses lease.Stores. The
// store is correct unless it is given a [Flaw], with which it proves that a test notices this flaw.
//
// A [Server] has any number of clients. The requests of a client go over a network if it has a
// dialer, and else directly. Notices of a release always come directly.
package fakestore
