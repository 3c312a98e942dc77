// Package adaptertest is shared by the tests of the adapters: steps with locks, the reaction to
// each class of a server's answers, the kit for semaphores in documents, an election, and
// benchmarks. Package testbed has the servers and processes.
package adaptertest
