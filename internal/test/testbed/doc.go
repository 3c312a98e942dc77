// Package testbed has the parts that the tests of the adapters share. It runs servers and other
// programs as child processes, and processes of the test's own binary. It has the ticket test.
package testbed
