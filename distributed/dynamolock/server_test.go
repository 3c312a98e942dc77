package dynamolock_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

const (
	table = "locks"
	long  = testbed.Hang // only a hang takes longer
)

var background = context.Background()

// startKumo returns the address of a kumo with the table of locks.
func startKumo(tb testing.TB) string {
	tb.Helper()
	_, addr := testbed.StartKumo(tb)
	require.NoError(tb, dynamolock.CreateTable(background, dial(tb, addr), table))
	return addr
}

// one has moto handle one request at a time, once it has been received. By itself it looks at a row
// and then replaces it, with no lock in between.
const one = `
import io, sys, threading
from werkzeug.serving import WSGIRequestHandler, run_simple
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
app, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()
class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_request(self, *args): pass
def serve(environ, start_response):
    size = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
    with turn:
        return list(app(environ, start_response))
run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True, request_handler=Quiet)
`

// motos are addresses of servers with the table of locks.
var motos = testbed.Pool[string]{
	Start: func(tb testing.TB) string {
		_, addr := newMoto(tb)
		return addr
	},
	Empty: func(addr string) error {
		if err := testbed.EmptyMoto(addr); err != nil {
			return err
		}
		client := dynamodb.New(options(addr, &http.Transport{DisableKeepAlives: true}))
		return dynamolock.CreateTable(background, client, table)
	},
}

// startMoto returns the address of a moto with the table of locks, which is empty.
func startMoto(tb testing.TB) string {
	tb.Helper()
	return motos.Lend(tb)
}

// newMoto starts a moto with the table of locks, for tests that stop it.
func newMoto(tb testing.TB) (p *testbed.Process, addr string) {
	tb.Helper()
	python := filepath.Join(filepath.Dir(testbed.Built(tb, "moto-server")), "bin", "python3")
	port := strconv.Itoa(testbed.Port(tb))
	p = testbed.Start(tb, exec.Command(python, "-c", one, port))
	addr = net.JoinHostPort("127.0.0.1", port)
	for end := time.Now().Add(long); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		}
		require.True(tb, time.Now().Before(end), "moto does not answer")
	}
	require.NoError(tb, dynamolock.CreateTable(background, dial(tb, addr), table))
	return p, addr
}

// dial returns a client of the server at addr.
func dial(tb testing.TB, addr string) *dynamodb.Client {
	var d net.Dialer
	return dialBy(tb, addr, d.DialContext)
}

func dialBy(tb testing.TB, addr string, by func(ctx context.Context, network, addr string) (net.Conn, error),
) *dynamodb.Client {
	transport := &http.Transport{DialContext: by, MaxIdleConnsPerHost: 16}
	tb.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(options(addr, transport))
}

func options(addr string, transport http.RoundTripper) dynamodb.Options {
	return dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://" + addr),
		HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "geheim"}, nil
		}),
	}
}

// open returns a client of locks that is closed with the test.
func open(tb testing.TB, client *dynamodb.Client, opts ...dynamolock.Option) *caslock.Client {
	tb.Helper()
	opts = append([]dynamolock.Option{
		dynamolock.WithPolling(2*time.Millisecond, 50*time.Millisecond),
		dynamolock.WithLeaseOptions(adaptertest.Patient),
	}, opts...)
	c, err := dynamolock.New(client, table, opts...)
	require.NoError(tb, err)
	adaptertest.CloseWith(tb, c)
	return c
}

var numbers atomic.Int64

// unused returns a name that no other lock has.
func unused() string { return fmt.Sprint("it", numbers.Add(1)) }

// read returns the row of a lock.
func read(tb testing.TB, client *dynamodb.Client, name string) map[string]types.AttributeValue {
	tb.Helper()
	out, err := client.GetItem(background, &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key(name), ConsistentRead: aws.Bool(true),
	})
	require.NoError(tb, err)
	return out.Item
}

// put writes a row, with texts as attributes.
func put(tb testing.TB, client *dynamodb.Client, name string, attributes map[string]string) {
	tb.Helper()
	row := key(name)
	for attribute, text := range attributes {
		row[attribute] = &types.AttributeValueMemberS{Value: text}
	}
	_, err := client.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(table), Item: row})
	require.NoError(tb, err)
}

// remove deletes a row, as a person or the time to live does.
func remove(tb testing.TB, client *dynamodb.Client, name string) {
	tb.Helper()
	_, err := client.DeleteItem(background, &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key(name)})
	require.NoError(tb, err)
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamolock.DefaultKey: &types.AttributeValueMemberS{Value: name}}
}

// attribute returns the text of an attribute.
func attribute(row map[string]types.AttributeValue, name string) (string, bool) {
	s, ok := row[name].(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, true
}
