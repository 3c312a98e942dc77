module github.com/jucgo/locks/distributed/gcslock

go 1.26.0

require (
	github.com/jucgo/locks v0.1.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/oauth2 v0.37.0
)

require (
	cloud.google.com/go/compute/metadata v0.3.0 // indirect
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/jucgo/locks => ../..
