// Package driver is for authors of stores, as database/sql/driver is for authors of databases.
// Users of locks read package lease.
//
// # How to add a store
//
//  1. Implement [Store]: five requests to the server, without state of holds. Its documentation
//     lists the optional interfaces and the benefit of each. The example of Store is a complete
//     store in memory.
//  2. Mark errors with [ErrRefused], [ErrLogin] and [ErrUnavailable] where the server's answer
//     permits it, see [Mark]. A store without marks is correct, but slower after errors.
//  3. Give the Store to lease.New, with [WithErrorPrefix], [WithPlace] and the adapter's defaults.
//     An adapter with several kinds of lock keeps one lease.Client for each kind in a [Group].
//  4. Run package leasetest on the Store: several clients, and faults between them and the server.
//     Run package lockstest on one lock. Do both on each topology of a real server.
//
// The page docs/guides/stores.md leads from an empty file to an adapter that is proved. It says
// which methods are called late, how a hold may end, and how much a wait costs.
package driver
