// Package prefetch has the processor fetch memory into its cache that is about to be used.
package prefetch
