// Package hook lets a package below zklock make locks that the API of zklock does not show.
package hook

import "github.com/jucgo/locks/distributed/lease"

// Ephemeral returns the lock of a *zklock.Client that is a single node. Package
// zklock sets it.
var Ephemeral func(client any, name string) *lease.Mutex
