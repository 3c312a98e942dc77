// Package testbed has what the tests of the adapters have in common. It runs servers and other
// programs as child processes, and processes of the test's own binary. It has the ticket test.
package testbed
