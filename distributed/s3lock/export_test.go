package s3lock

import (
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks/distributed/caslock"
)

// Documents returns what the client of [New] is made of.
func Documents(client *s3.Client, bucket string) caslock.Documents {
	d, _, err := newDocuments(client, bucket, nil)
	if err != nil {
		panic(err)
	}
	return d
}

// Refusals is the table of answers.
var Refusals = refusals

// Probing reports whether a writer probes the store.
func Probing(d caslock.Documents) bool { return len(d.(*documents).turn) > 0 }
