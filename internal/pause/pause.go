// Package pause tells the processor that the program spins.
package pause
