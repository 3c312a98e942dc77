package dynamolock

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/jucgo/locks/distributed/caslock"
)

// NewDocuments returns the documents of a table.
func NewDocuments(client *dynamodb.Client, table string, opts ...Option) (caslock.Documents, error) {
	d, _, err := newDocuments(client, table, opts)
	return d, err
}

// Refusals is the table of answers.
var Refusals = refusals

// ClassOf returns the class of an answer.
var ClassOf = classOf
