package dynamolock_test

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// servers are the servers that the tests run on.
var servers = map[string]func(testing.TB) string{"kumo": startKumo, "moto": startMoto}

func token(t *testing.T, l *lease.Mutex) uint64 {
	t.Helper()
	owner := adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	require.NoError(t, l.UnlockContext(owner))
	return h.Token()
}

func TestARowHasNothingThatEndsItsLife(t *testing.T) {
	t.Parallel()
	client := dial(t, startMoto(t))
	l := open(t, client).Mutex("it")
	require.NoError(t, l.LockContext(adaptertest.Owner()))
	row := read(t, client, "it")
	require.Equal(t, []string{"lock", "name", "version"}, slices.Sorted(maps.Keys(row)))
	for name := range row { // the time to live is a number
		_, ok := attribute(row, name)
		require.True(t, ok, name)
	}
}

func TestADeletedRowEndsTheHold(t *testing.T) {
	t.Parallel()
	client := dial(t, startMoto(t))
	l, owner := open(t, client, dynamolock.WithTTL(3*time.Second)).Mutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	remove(t, client, "it")
	soon(t, h.Lost(), "the loss")
	require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	require.EqualValues(t, 1, token(t, l), "tokens begin anew")
}

func TestNoVersionComesAgainAfterADeletion(t *testing.T) {
	t.Parallel()
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			client := dial(t, start(t))
			d, err := dynamolock.NewDocuments(client, table)
			require.NoError(t, err)
			ctx := t.Context()
			_, err = d.Swap(ctx, "it", []byte("data"), "unknown")
			require.ErrorIs(t, err, caslock.ErrConflict, "there is no row")
			first, err := d.Swap(ctx, "it", []byte("data"), "")
			require.NoError(t, err)
			_, err = d.Swap(ctx, "it", []byte("data"), "")
			require.ErrorIs(t, err, caslock.ErrConflict, "there is a row")
			require.ErrorIs(t, d.(caslock.Deleter).Delete(ctx, "it", "unknown"), caslock.ErrConflict)
			require.NoError(t, d.(caslock.Deleter).Delete(ctx, "it", first))
			require.ErrorIs(t, d.(caslock.Deleter).Delete(ctx, "it", first), caslock.ErrConflict)
			data, version, err := d.Load(ctx, "it")
			require.NoError(t, err)
			require.Empty(t, data)
			require.Empty(t, version)
			second, err := d.Swap(ctx, "it", []byte("data"), "")
			require.NoError(t, err)
			require.NotEqual(t, first, second)
			_, err = d.Swap(ctx, "it", []byte("late"), first)
			require.ErrorIs(t, err, caslock.ErrConflict)
			data, version, err = d.Load(ctx, "it")
			require.NoError(t, err)
			require.Equal(t, "data", string(data))
			require.Equal(t, second, version)
		})
	}
}

// theirs are rows of other lock clients, cirello.io/dynamolock and Amazon's of Java. Both have the
// same attributes. The last row is not a lock.
var theirs = map[string]map[string]string{
	"cirello.io/dynamolock, held": {
		"ownerName": "host-1", "leaseDuration": "20s", "recordVersionNumber": "1790000000000000000:MFRGG",
	},
	"cirello.io/dynamolock, released": {
		"ownerName": "host-1", "leaseDuration": "20s", "recordVersionNumber": "1790000000000000000:MFRGG",
		"isReleased": "1",
	},
	"amazon-dynamodb-lock-client, held": {
		"ownerName": "host-1", "leaseDuration": "20000", "recordVersionNumber": "0b1f7c1e-54a6-4f0e-8a0e-2b6f5f9d7c11",
	},
	"amazon-dynamodb-lock-client, released": {
		"ownerName": "host-1", "leaseDuration": "20000", "recordVersionNumber": "0b1f7c1e-54a6-4f0e-8a0e-2b6f5f9d7c11",
		"isReleased": "1",
	},
	"a row with one of our attributes": {"version": "3"},
}

func TestRowsOfOtherLockClientsAreForeign(t *testing.T) {
	t.Parallel()
	client := dial(t, startMoto(t))
	c := open(t, client)
	for name, attributes := range theirs {
		put(t, client, name, attributes)
		before := read(t, client, name)
		l := c.Mutex(name)
		_, tried := l.TryLockContext(adaptertest.Owner())
		_, forced := l.ForceUnlock(background)
		_, inspected := l.Inspect(background)
		for _, err := range []error{l.LockContext(adaptertest.Owner()), tried, forced, inspected} {
			require.ErrorIs(t, err, locks.ErrForeign)
			require.ErrorContains(t, err, `a row of table "locks" without the attributes lock and version`)
		}
		require.Equal(t, before, read(t, client, name))
	}
	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.Empty(t, names)
	swept, err := c.Sweep(background, "", 0)
	require.NoError(t, err)
	require.Empty(t, swept)
}

func TestOtherLockClientsCannotTakeOurRows(t *testing.T) {
	t.Parallel()
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			client := dial(t, start(t))
			require.NoError(t, open(t, client).Mutex("it").LockContext(adaptertest.Owner()))
			for what, in := range map[string]*dynamodb.PutItemInput{ // of both clients
				"a new or released lock": {
					ConditionExpression: aws.String(
						"attribute_not_exists(#key) OR (attribute_exists(#key) AND #x = :x)"),
					ExpressionAttributeNames: map[string]string{"#key": dynamolock.DefaultKey, "#x": "isReleased"},
					ExpressionAttributeValues: map[string]types.AttributeValue{
						":x": &types.AttributeValueMemberS{Value: "1"},
					},
				},
				"an expired lock": { // in which they have seen no version
					ConditionExpression: aws.String("attribute_exists(#key) AND #x = :x"),
					ExpressionAttributeNames: map[string]string{
						"#key": dynamolock.DefaultKey, "#x": "recordVersionNumber",
					},
					ExpressionAttributeValues: map[string]types.AttributeValue{":x": &types.AttributeValueMemberS{}},
				},
			} {
				in.TableName, in.Item = aws.String(table), key("it")
				_, err := client.PutItem(background, in)
				var no *types.ConditionalCheckFailedException
				require.ErrorAs(t, err, &no, what)
			}
		})
	}
}

func TestPrefixesSeparateLocks(t *testing.T) {
	t.Parallel()
	client := dial(t, startMoto(t))
	a, b := open(t, client, dynamolock.WithPrefix("shop/")), open(t, client, dynamolock.WithPrefix("shop/b/"))
	require.NoError(t, a.Mutex("it").LockContext(adaptertest.Owner()))
	require.NoError(t, b.Mutex("it").LockContext(adaptertest.Owner()))
	require.NotEmpty(t, read(t, client, "shop/b/it"))
	names, err := a.Names(background, "*")
	require.NoError(t, err)
	require.Equal(t, []string{"it"}, names)
	names, err = a.Names(background, "")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"b/it", "it"}, names)
}

func TestEveryReadIsConsistent(t *testing.T) {
	t.Parallel()
	f := newFront()
	f.answers(func(string, func() *http.Response) *http.Response { return reply(200, `{}`) })
	c := open(t, dynamodb.New(options("127.0.0.1:1", f)))
	_, err := c.Mutex("it").Inspect(background)
	require.NoError(t, err)
	_, err = c.Names(background, "")
	require.NoError(t, err)
	for _, op := range []string{"GetItem", "Scan"} {
		require.Contains(t, f.bodies[op], `"ConsistentRead":true`)
	}
}

func TestNamesReadsAllPages(t *testing.T) {
	t.Parallel()
	f := newFront()
	n := 0
	f.answers(func(string, func() *http.Response) *http.Response {
		n++
		switch n {
		case 1:
			return reply(200, `{"Items":[{"name":{"S":"a"}}],"LastEvaluatedKey":{"name":{"S":"a"}}}`)
		case 2:
			return reply(200, `{"Items":[],"LastEvaluatedKey":{"name":{"S":"b"}}}`)
		}
		return reply(200, `{"Items":[{"name":{"S":"c"}}]}`)
	})
	names, err := open(t, dynamodb.New(options("127.0.0.1:1", f))).Names(background, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, names)
	require.Equal(t, []int{3}, f.requests("Scan"))
}

func TestSweepDeletesReleasedRows(t *testing.T) {
	t.Parallel()
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			client := dial(t, start(t))
			c := open(t, client)
			adaptertest.Pair(t, c.Mutex("free"))
			require.NoError(t, c.Mutex("held").LockContext(adaptertest.Owner()))
			swept, err := c.Sweep(background, "", 0)
			require.NoError(t, err)
			require.Equal(t, []string{"free"}, swept)
			require.Empty(t, read(t, client, "free"))
			require.NotEmpty(t, read(t, client, "held"))
		})
	}
}

// costs fails unless the front has had these requests since the last call.
func costs(t *testing.T, f *front, reads, writes int, what string) {
	t.Helper()
	require.Equal(t, []int{reads, writes}, f.requests("GetItem", "PutItem"), "reads and writes of %s", what)
}

func TestAPairTakesThreeRequestsOrTwo(t *testing.T) {
	t.Parallel()
	addr := startMoto(t)
	client, f := dialFront(t, addr)
	l := open(t, client).Mutex("it")
	adaptertest.Pair(t, l)
	costs(t, f, 1, 2, "the first pair")
	adaptertest.Pair(t, l)
	costs(t, f, 0, 2, "a pair whose version is known")
	owner := adaptertest.Owner()
	require.NoError(t, open(t, dial(t, addr)).Mutex("it").LockContext(owner))
	held, err := open(t, client).Mutex("it").TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.False(t, held)
	costs(t, f, 1, 0, "a try of a held lock")
}

func TestARenewalIsOneWrite(t *testing.T) {
	t.Parallel()
	client, f := dialFront(t, startMoto(t))
	l, owner := open(t, client).Mutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	f.requests()
	require.NoError(t, h.Extend(owner, time.Minute))
	costs(t, f, 0, 1, "a renewal")
}

func TestATableIsCreatedOnce(t *testing.T) {
	t.Parallel()
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			client := dial(t, start(t))
			require.NoError(t, dynamolock.CreateTable(background, client, table), "it is there")
			require.NoError(t, dynamolock.CheckTable(background, client, table))
			require.NoError(t, dynamolock.CreateTable(background, client, "other", dynamolock.WithKey("id")))
			err := dynamolock.CreateTable(background, client, "other")
			require.ErrorIs(t, err, dynamolock.ErrTable)
			require.EqualError(t, err, `dynamolock: create table: table "other": the table cannot have locks: `+
				`its partition key is called "id", not "name"`)
		})
	}
}

// closed is a body whose connection is closed before it is read.
type closed struct{}

func (closed) Read([]byte) (int, error) { return 0, net.ErrClosed }
func (closed) Close() error             { return nil }

func TestATableIsCreatedAlthoughAnswersEndInTheirMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront()
		client := dynamodb.New(options("fake", f))
		requests := make(map[string]int)
		f.answers(func(op string, _ func() *http.Response) *http.Response {
			requests[op]++
			answer := reply(http.StatusOK, `{"Table":{"TableStatus":"ACTIVE"}}`)
			if requests[op]%2 == 1 {
				answer.Body = closed{}
			}
			return answer
		})
		require.NoError(t, dynamolock.CreateTable(background, client, table))
		require.NoError(t, dynamolock.CheckTable(background, client, table))
		require.Equal(t, map[string]int{"CreateTable": 2, "DescribeTable": 6}, requests, "a wait and two checks")
	})
}

func TestAnUnfitTableIsNamed(t *testing.T) {
	t.Parallel()
	f := newFront()
	client := dynamodb.New(options("127.0.0.1:1", f))
	const (
		hash = `"KeySchema":[{"AttributeName":"name","KeyType":"HASH"}],` +
			`"AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}]`
		active   = `"TableStatus":"ACTIVE",`
		replicas = `,"Replicas":[{"RegionName":"us-east-1"}]`
	)
	for _, c := range []struct{ description, why string }{
		{active + hash, ""},
		{`"TableStatus":"CREATING",` + hash, "its status is CREATING"},
		{active + strings.Replace(hash, "}]", `},{"AttributeName":"at","KeyType":"RANGE"}]`, 1), "it has a sort key"},
		{active + strings.ReplaceAll(hash, `"name"`, `"id"`), `its partition key is called "id", not "name"`},
		{active + strings.Replace(hash, `"S"`, `"N"`, 1), "its partition key is of type N, not S"},
		{active + hash + replicas, "it is a global table whose regions accept writes independently"},
		{active + hash + replicas + `,"MultiRegionConsistency":"EVENTUAL"`, "the last writer wins"},
		{active + hash + replicas + `,"MultiRegionConsistency":"STRONG"`, ""},
	} {
		description, why := c.description, c.why
		f.answers(func(string, func() *http.Response) *http.Response { return reply(200, `{"Table":{`+description+`}}`) })
		err := dynamolock.CheckTable(background, client, table)
		if why == "" {
			require.NoError(t, err, description)
			continue
		}
		require.ErrorIs(t, err, dynamolock.ErrTable, description)
		require.ErrorContains(t, err, why)
	}
	f.answers(func(string, func() *http.Response) *http.Response {
		return refusal(http.StatusBadRequest, "AccessDeniedException")
	})
	err := dynamolock.CheckTable(background, client, table)
	require.ErrorContains(t, err, "the right dynamodb:DescribeTable is missing")
	require.False(t, errors.Is(err, dynamolock.ErrTable))
}
