// Package adaptertest has what the tests of the adapters share: steps with locks, the reaction to
// each class of a server's answers, the kit for semaphores in documents, an election, and
// benchmarks. Package testbed has the servers and processes.
package adaptertest
