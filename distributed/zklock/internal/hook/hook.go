// Package hook lets a package below zklock make locks that the API of zklock does not show.
package hook

// Ephemeral returns the *zklock.Mutex of a *zklock.Client whose lock is a single node. Package
// zklock sets it.
var Ephemeral func(client any, name string) any
