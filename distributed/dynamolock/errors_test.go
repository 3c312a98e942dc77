package dynamolock_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

const throttled = "ProvisionedThroughputExceededException"

func TestAThrottledWaiterGoesOn(t *testing.T) {
	t.Parallel()
	addr := startMoto(t)
	for _, op := range []string{"GetItem", "PutItem"} {
		for _, code := range []string{throttled, "ThrottlingException", "TransactionConflictException"} {
			client, f := dialFront(t, addr)
			l := open(t, client).Mutex(unused())
			f.refuses(op, 3, http.StatusBadRequest, code)
			owner := adaptertest.Owner()
			require.NoError(t, l.LockContext(owner), "%s: %s", op, code)
			require.NoError(t, l.UnlockContext(owner))
		}
	}
}

func TestAThrottledRenewalLosesNothing(t *testing.T) {
	t.Parallel()
	client, f := dialFront(t, startMoto(t))
	l, owner := open(t, client, dynamolock.WithTTL(6*time.Second)).Mutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	soon(t, f.refuses("PutItem", 2, http.StatusBadRequest, throttled), "a renewal after two that were throttled")
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(owner))
}

func TestAThrottledReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	client, f := dialFront(t, startMoto(t))
	c, owner := open(t, client), adaptertest.Owner()
	require.NoError(t, c.Mutex("it").LockContext(owner))
	f.refuses("PutItem", 2, http.StatusBadRequest, throttled)
	require.NoError(t, c.Mutex("it").UnlockContext(owner))
	held, err := c.Mutex("it").TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.True(t, held)
}

func TestAWriteWhoseAnswerFailsGivesTheLock(t *testing.T) {
	t.Parallel()
	client, f := dialFront(t, startMoto(t))
	l, owner := open(t, client).Mutex("it"), adaptertest.Owner()
	failed := false
	f.answers(func(op string, pass func() *http.Response) *http.Response {
		resp := pass()
		if op == "PutItem" && !failed { // it was carried out
			failed = true
			resp.Body.Close()
			return refusal(http.StatusInternalServerError, "InternalServerError")
		}
		return resp
	})
	require.NoError(t, l.LockContext(owner))
	require.Equal(t, []int{1, 2}, f.requests("PutItem", "GetItem"), "it is looked up, and not repeated")
	require.NoError(t, l.UnlockContext(owner))
}

func TestEachRequestIsSentOnce(t *testing.T) {
	t.Parallel()
	f := newFront()
	f.answers(func(string, func() *http.Response) *http.Response {
		return refusal(http.StatusInternalServerError, "InternalServerError")
	})
	o := options("127.0.0.1:1", f)
	o.RetryMaxAttempts, o.RetryMode = 5, aws.RetryModeAdaptive
	d, err := dynamolock.NewDocuments(dynamodb.New(o), table)
	require.NoError(t, err)
	_, _, err = d.Load(t.Context(), "it")
	require.Error(t, err)
	_, err = d.Swap(t.Context(), "it", []byte("data"), "")
	require.Error(t, err)
	err = d.(caslock.Deleter).Delete(t.Context(), "it", "version")
	require.Error(t, err)
	_, err = d.(caslock.Lister).Names(t.Context())
	require.Error(t, err)
	require.Equal(t, []int{1, 1, 1, 1}, f.requests("GetItem", "PutItem", "DeleteItem", "Scan"))
}

// logins are some codes that refuse the login.
var logins = []string{"ExpiredTokenException", "UnrecognizedClientException"}

func TestOnlyABlamedRequestIsRefused(t *testing.T) {
	t.Parallel()
	f := newFront()
	d, err := dynamolock.NewDocuments(dynamodb.New(options("127.0.0.1:1", f)), table)
	require.NoError(t, err)
	for _, c := range []struct {
		status               int
		code                 string
		refused, unavailable bool
	}{
		{400, "AccessDeniedException", true, false},
		{400, "ResourceNotFoundException", true, false},
		{400, "ValidationException", true, false},
		{400, "ExpiredTokenException", true, false},
		{400, throttled, true, true},
		{400, "ReplicatedWriteConflictException", true, true},
		{400, "", false, false},
		{403, "", false, false},
		{429, "", false, true},
		{400, "UnrecognizedClientException", true, false},
		{400, "RequestLimitExceeded", true, true},
		{400, "ItemCollectionSizeLimitExceededException", true, false},
		{400, "SomethingNewException", true, false},
		{401, "", true, false},
		{500, "InternalServerError", false, true},
		{503, "ServiceUnavailable", false, true},
		{504, "", false, true},
	} {
		f.answers(func(string, func() *http.Response) *http.Response { return refusal(c.status, c.code) })
		_, err := d.Swap(t.Context(), "it", []byte("data"), "")
		require.Error(t, err)
		require.NotErrorIs(t, err, caslock.ErrConflict)
		require.Equal(t, c.refused, errors.Is(err, lease.ErrRefused), "%v", c)
		require.Equal(t, c.unavailable, errors.Is(err, lease.ErrUnavailable), "%v", c)
		login := c.status == http.StatusUnauthorized || slices.Contains(logins, c.code)
		require.Equal(t, login, errors.Is(err, lease.ErrLogin), "%v", c)
	}
}

// signedOut are the options of a client without keys.
func signedOut(addr string) dynamodb.Options {
	o := options(addr, http.DefaultTransport)
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("nobody is signed in")
	})
	return o
}

func TestAWriteThatWasNotSentIsRefused(t *testing.T) {
	t.Parallel()
	for what, client := range map[string]*dynamodb.Client{
		"no keys": dynamodb.New(signedOut("127.0.0.1:1")), "no server": dial(t, "127.0.0.1:1"),
	} {
		d, err := dynamolock.NewDocuments(client, table)
		require.NoError(t, err)
		_, err = d.Swap(t.Context(), "it", []byte("data"), "")
		require.ErrorIs(t, err, lease.ErrRefused, what)
		require.ErrorIs(t, err, lease.ErrUnreachable, what)
	}
}

func TestAClockThatJumpedFailsNoAcquisition(t *testing.T) {
	t.Parallel()
	client, f := dialFront(t, startMoto(t))
	once := false
	f.answers(func(_ string, pass func() *http.Response) *http.Response {
		if once {
			return pass()
		}
		once = true
		resp := refusal(http.StatusBadRequest, "InvalidSignatureException")
		resp.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		return resp
	})
	require.NoError(t, open(t, client).Mutex("it").LockContext(adaptertest.Owner()))
}

// The SDK takes the first refusal for the effect of a wrong clock, and signs the next request by
// the time in the answer.
func TestAMissingRightIsToldDespiteAWrongClock(t *testing.T) {
	t.Parallel()
	f := newFront()
	f.answers(func(string, func() *http.Response) *http.Response {
		resp := refusal(http.StatusBadRequest, "AccessDeniedException")
		resp.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		return resp
	})
	client := dynamodb.New(options("127.0.0.1:1", f))
	err := open(t, client).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, "the right dynamodb:GetItem is missing")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrUnavailable)
	require.Equal(t, []int{2}, f.requests("GetItem"))
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	addr := startMoto(t)
	client, f := dialFront(t, addr)
	lock := func(client *dynamodb.Client, table string, opts ...dynamolock.Option) error {
		c, err := dynamolock.New(client, table, opts...)
		require.NoError(t, err)
		defer c.Close(background)
		return c.Mutex("it").LockContext(adaptertest.Owner())
	}
	require.ErrorContains(t, lock(client, "nowhere"),
		`dynamolock: lock "it": table "nowhere": no such table in this region: call CreateTable, `+
			`or give create=true in the URL: operation error DynamoDB: GetItem`)
	require.ErrorContains(t, lock(client, table, dynamolock.WithKey("id")),
		`dynamolock: lock "it": table "locks": the table's key has to be "id" alone, a string: operation`)
	f.answers(func(op string, pass func() *http.Response) *http.Response {
		if op == "PutItem" {
			return refusal(http.StatusBadRequest, "AccessDeniedException")
		}
		return pass()
	})
	require.ErrorContains(t, lock(client, table),
		`dynamolock: lock "it": table "locks": the right dynamodb:PutItem is missing: operation error`)

	err := lock(dynamodb.New(signedOut(addr)), table)
	require.ErrorContains(t, err, "nobody is signed in")
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

func TestAWrongAddressIsUnreachable(t *testing.T) {
	t.Parallel()
	err := open(t, dial(t, "127.0.0.1:1")).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.ErrorContains(t, err, "connection refused")
}

func TestWrongOptionsAreRefused(t *testing.T) {
	client := dial(t, "127.0.0.1:1")
	for why, given := range map[string]struct {
		client *dynamodb.Client
		table  string
		opt    dynamolock.Option
	}{
		"nil client":                                {nil, table, dynamolock.WithTTL(1)},
		"the name of the table is empty":            {client, "", dynamolock.WithTTL(1)},
		`the partition key cannot be called "lock"`: {client, table, dynamolock.WithKey("lock")},
		`the partition key cannot be called ""`:     {client, table, dynamolock.WithKey("")},
		"the prefix: the name is not UTF-8":         {client, table, dynamolock.WithPrefix("\xff")},
		"the prefix: the key has 2049 bytes":        {client, table, dynamolock.WithPrefix(strings.Repeat("p", 2048))},
		"TTL of 0s":                                 {client, table, dynamolock.WithTTL(0)},
		"pauses from 0s":                            {client, table, dynamolock.WithPolling(0, 0)},
	} {
		_, err := dynamolock.New(given.client, given.table, given.opt)
		require.ErrorContains(t, err, "dynamolock: "+why)
	}
	require.ErrorContains(t, dynamolock.CheckTable(background, nil, table), "dynamolock: check table: nil client")
	require.ErrorContains(t, dynamolock.CreateTable(background, nil, table), "dynamolock: create table: nil client")
	require.ErrorIs(t, dynamolock.CheckTable(nil, client, table), locks.ErrNilContext)  //nolint:staticcheck // refused
	require.ErrorIs(t, dynamolock.CreateTable(nil, client, table), locks.ErrNilContext) //nolint:staticcheck // refused
}

func TestARefusedNameNeverAsksTheServer(t *testing.T) {
	c := open(t, dial(t, "127.0.0.1:1"))
	for name, why := range map[string]string{
		"": "the name is empty", "\xff": "the name is not UTF-8",
		strings.Repeat("n", 2049): "the key has 2049 bytes, at most 2048 are allowed",
	} {
		t.Run(why, func(t *testing.T) { testbed.Refused(t, c.Mutex(name), why) })
	}
}
