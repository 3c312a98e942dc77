module example.com/testdata

go 1.26.0

require (
	github.com/jucgo/locks v0.1.0
	golang.org/x/sync v0.24.0
)

require github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect

replace (
	github.com/jucgo/locks => ../../../..
	golang.org/x/sync => ./xsync
)
