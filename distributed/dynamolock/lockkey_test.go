package dynamolock_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/dynamolock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	cloud := dynamodb.New(dynamodb.Options{Region: "eu-central-1"})
	local := dynamodb.New(dynamodb.Options{Region: "r", BaseEndpoint: aws.String("http://key:geheim@store:8000")})
	for _, c := range []struct {
		client *dynamodb.Client
		table  string
		prefix string
		want   string
	}{
		{cloud, "shop", "", "it\x00dynamodb eu-central-1  shop"},
		{local, "shop", "a/", "a/it\x00dynamodb r store:8000 shop"},
	} {
		for range 2 { // each client has an id of its own
			client, err := dynamolock.New(c.client, c.table, dynamolock.WithPrefix(c.prefix))
			require.NoError(t, err)
			require.Equal(t, c.want, client.Mutex("it").LockKey())
			require.NoError(t, client.Close(t.Context()))
		}
	}
}
