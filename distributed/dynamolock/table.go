package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

// ErrTable is matched by errors of [CheckTable] and [CreateTable] that say why a table cannot have
// locks.
var ErrTable = errors.New("the table cannot have locks")

// creation limits how long a new table may take.
const creation = 5 * time.Minute

// CreateTable creates a table for locks, whose requests are paid one by one, and returns when it
// can be used, or when ctx ends. A table that is there already is left as it is, and checked as by
// [CheckTable]. It needs the rights dynamodb:CreateTable and dynamodb:DescribeTable. Only [WithKey]
// counts of the options. The client repeats the requests as its own options say.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string, opts ...Option) error {
	d, _, err := newDocuments(client, table, opts)
	if err == nil {
		err = d.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("dynamolock: create table: %w", adapter.OfStore(ctx, err))
	}
	return nil
}

func (d *documents) create(ctx context.Context) error {
	if ctx == nil {
		return locks.ErrNilContext
	}
	var a attempt
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &d.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: &d.key, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: &d.key, AttributeType: types.ScalarAttributeTypeS},
		},
	}, a.noteSending)
	var there *types.ResourceInUseException
	if err != nil && !errors.As(err, &there) {
		return d.storeError(err, &a, "dynamodb:CreateTable")
	}
	wait := dynamodb.NewTableExistsWaiter(d.client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second, 5*time.Second
	})
	if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, creation); err != nil {
		return d.storeError(err, &attempt{sent: true}, "dynamodb:DescribeTable")
	}
	return d.check(ctx)
}

// CheckTable returns an error matching [ErrTable] if the table cannot have locks. The reasons are a
// wrong key, a table that is not ready, and a global table whose regions accept writes
// independently. Other errors are errors of the request, which needs the right
// dynamodb:DescribeTable. Global tables of the version of 2017 are not recognized.
func CheckTable(ctx context.Context, client *dynamodb.Client, table string, opts ...Option) error {
	d, _, err := newDocuments(client, table, opts)
	if err == nil {
		err = d.check(ctx)
	}
	if err != nil {
		return fmt.Errorf("dynamolock: check table: %w", adapter.OfStore(ctx, err))
	}
	return nil
}

func (d *documents) check(ctx context.Context) error {
	if ctx == nil {
		return locks.ErrNilContext
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := attempt{reads: true}
	out, err := d.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, a.noteSending)
	if err != nil {
		return d.storeError(err, &a, "dynamodb:DescribeTable")
	}
	if why := d.unfit(out.Table); why != "" {
		return fmt.Errorf("table %q: %w: %s", d.table, ErrTable, why)
	}
	return nil
}

// unfit returns why a table cannot have locks, or an empty text.
func (d *documents) unfit(t *types.TableDescription) string {
	switch {
	case t == nil:
		return "the answer has no description"
	case t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating:
		return fmt.Sprintf("its status is %s", t.TableStatus)
	case len(t.KeySchema) > 1:
		return "it has a sort key"
	}
	for _, k := range t.KeySchema {
		if *k.AttributeName != d.key {
			return fmt.Sprintf("its partition key is called %q, not %q", *k.AttributeName, d.key)
		}
	}
	for _, a := range t.AttributeDefinitions {
		if *a.AttributeName == d.key && a.AttributeType != types.ScalarAttributeTypeS {
			return fmt.Sprintf("its partition key is of type %s, not S", a.AttributeType)
		}
	}
	if len(t.Replicas) > 0 && t.MultiRegionConsistency != types.MultiRegionConsistencyStrong {
		return "it is a global table whose regions accept writes independently, so that the last writer wins"
	}
	return ""
}
