// Package hook lets a package below zklock make locks that the API of zklock does not show.
package hook

type ephemeral struct{}

// Ephemeral, as the data of a zklock.Client.Mutex, makes it the lock that is a single node.
var Ephemeral any = ephemeral{}
