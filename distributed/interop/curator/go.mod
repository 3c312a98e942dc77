module github.com/jucgo/locks/distributed/interop/curator

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/jucgo/locks v0.1.0
	github.com/jucgo/locks/distributed/zklock v0.1.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace (
	github.com/jucgo/locks => ../../..
	github.com/jucgo/locks/distributed/zklock => ../../zklock
)
