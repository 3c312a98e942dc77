package natslock

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/caslock"
)

// NewDocuments returns the documents of a bucket.
func NewDocuments(ctx context.Context, js jetstream.JetStream, bucket string) (caslock.Documents, error) {
	return newDocuments(ctx, js, bucket)
}

// Refusals is the table of answers.
var Refusals = refusals
