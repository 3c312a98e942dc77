// Package bench measures the distributed locks beside other libraries, which only this module depends on: go test -bench .
package bench
