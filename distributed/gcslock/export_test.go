package gcslock

import (
	"net/http"

	"github.com/jucgo/locks/distributed/caslock"
)

// Documents returns what the client of [New] is made of.
func Documents(client *http.Client, bucket, endpoint string) caslock.Documents {
	d, err := newDocuments(client, bucket, options{prefix: DefaultPrefix, endpoint: endpoint})
	if err != nil {
		panic(err)
	}
	return d
}

// Refusals is the table of answers.
var Refusals = refusals
