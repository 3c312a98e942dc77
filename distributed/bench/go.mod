module github.com/jucgo/locks/distributed/bench

go 1.26.0

require (
	github.com/gofrs/flock v0.13.1
	github.com/jucgo/locks v0.0.0
	github.com/jucgo/locks/distributed/filelock v0.0.0
)

require (
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/jucgo/locks => ../..
	github.com/jucgo/locks/distributed/filelock => ../filelock
)
