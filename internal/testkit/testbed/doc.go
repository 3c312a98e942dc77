// Package testbed has what the tests of the adapters have in common: servers and other programs
// as child processes, processes of the test's own binary, a network that fails, and the ticket
// test.
package testbed
