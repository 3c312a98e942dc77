module github.com/jucgo/locks/distributed/interop/redisson

go 1.26.0

require (
	github.com/jucgo/locks v0.1.0
	github.com/jucgo/locks/distributed/redislock v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/jucgo/locks => ../../..
	github.com/jucgo/locks/distributed/redislock => ../../redislock
)
