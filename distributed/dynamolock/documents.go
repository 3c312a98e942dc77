package dynamolock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
)

// A lock is a row. Each request names it by its key:
//
//	Load     GetItem      consistent
//	Swap     PutItem      if the version has not changed since the read, or if no row exists
//	Delete   DeleteItem   if the version has not changed since the read
//	Names    Scan         consistent, all pages
//
// A version is a random text. A growing number would begin anew after a row was deleted.

// The attributes of a row besides its key.
const (
	lockAttribute    = "lock"    // the document, as text
	versionAttribute = "version" // another version with each write
)

const (
	// longestKey is how many bytes a partition key has at most.
	longestKey = 2048
	// patience is for how long a request waits for its answer. The library would wait for ever.
	patience = 5 * time.Second
)

// documents is the [caslock.Documents] in a table.
type documents struct {
	client *dynamodb.Client
	table  string
	key    string // the attribute
	prefix string // of the keys
}

var (
	_ caslock.Documents   = (*documents)(nil)
	_ caslock.Lister      = (*documents)(nil)
	_ caslock.Deleter     = (*documents)(nil)
	_ caslock.NameChecker = (*documents)(nil)
)

// CheckName refuses what cannot be a key. The library would change a name that is not UTF-8.
func (d *documents) CheckName(name string) error {
	switch n := len(d.prefix + name); {
	case n > longestKey:
		return fmt.Errorf("the key has %d bytes, at most %d are allowed", n, longestKey)
	case !utf8.ValidString(d.prefix + name):
		return errors.New("the name is not UTF-8")
	}
	return nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// textOf returns the text of an attribute.
func textOf(row map[string]types.AttributeValue, attribute string) (string, bool) {
	s, ok := row[attribute].(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, s.Value != ""
}

func (d *documents) keyOf(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{d.key: text(d.prefix + name)}
}

// Load reads the row.
func (d *documents) Load(ctx context.Context, name string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := attempt{reads: true}
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.table, Key: d.keyOf(name), ConsistentRead: aws.Bool(true),
	}, a.once)
	switch {
	case err != nil:
		return nil, "", d.storeError(err, &a, "dynamodb:GetItem")
	case len(out.Item) == 0:
		return nil, "", nil
	}
	data, ok := textOf(out.Item, lockAttribute)
	version, versioned := textOf(out.Item, versionAttribute)
	if !ok || !versioned {
		return nil, "", fmt.Errorf("%w: a row of table %q without the attributes %s and %s",
			locks.ErrForeign, d.table, lockAttribute, versionAttribute)
	}
	return []byte(data), version, nil
}

// condition is the condition of a write on the row that it replaces.
type condition struct {
	expression string
	names      map[string]string
	values     map[string]types.AttributeValue
}

// hasVersion is the condition that the row has a version, or is not there.
func (d *documents) hasVersion(version string) condition {
	if version == "" {
		return condition{"attribute_not_exists(#key)", map[string]string{"#key": d.key}, nil}
	}
	return condition{
		"#version = :version", map[string]string{"#version": versionAttribute},
		map[string]types.AttributeValue{":version": text(version)},
	}
}

// Swap writes the whole row. Attributes that another program has added get lost.
func (d *documents) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var a attempt
	next := rand.Text()
	row := d.keyOf(name)
	row[lockAttribute], row[versionAttribute] = text(string(data)), text(next)
	c := d.hasVersion(version)
	_, err := d.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &d.table, Item: row, ConditionExpression: &c.expression,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}, a.once)
	if err != nil {
		return "", d.storeError(err, &a, "dynamodb:PutItem")
	}
	return next, nil
}

// Delete removes the row.
func (d *documents) Delete(ctx context.Context, name, version string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var a attempt
	c := d.hasVersion(version)
	_, err := d.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &d.table, Key: d.keyOf(name), ConditionExpression: &c.expression,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}, a.once)
	if err != nil {
		return d.storeError(err, &a, "dynamodb:DeleteItem")
	}
	return nil
}

// Names reads the whole table, and returns the names of the rows that are locks.
func (d *documents) Names(ctx context.Context) (names []string, err error) {
	in := &dynamodb.ScanInput{
		TableName: &d.table, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#key"),
		FilterExpression: aws.String("attribute_exists(#lock) AND attribute_exists(#version)"),
		ExpressionAttributeNames: map[string]string{
			"#key": d.key, "#lock": lockAttribute, "#version": versionAttribute,
		},
	}
	for {
		page, err := d.scan(ctx, in)
		if err != nil {
			return names, err
		}
		for _, row := range page.Items {
			key, _ := textOf(row, d.key)
			if name, ok := strings.CutPrefix(key, d.prefix); ok && name != "" {
				names = append(names, name)
			}
		}
		if len(page.LastEvaluatedKey) == 0 {
			return names, nil
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

func (d *documents) scan(ctx context.Context, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := attempt{reads: true}
	page, err := d.client.Scan(ctx, in, a.once)
	if err != nil {
		return nil, d.storeError(err, &a, "dynamodb:Scan")
	}
	return page, nil
}
