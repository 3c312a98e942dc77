module github.com/jucgo/locks/bench/compare

go 1.26.0

require (
	github.com/jucgo/locks v0.1.0
	github.com/linkdata/deadlock v0.5.5
	github.com/moby/locker v1.0.1
	github.com/neilotoole/fifomu v0.1.2
	github.com/puzpuzpuz/xsync/v4 v4.5.0
	github.com/sasha-s/go-deadlock v0.3.9
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
