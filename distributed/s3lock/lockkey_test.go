package s3lock_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/s3lock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	at := func(region, endpoint string) *s3.Client {
		o := s3.Options{Region: region}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		return s3.New(o)
	}
	for _, c := range []struct {
		client *s3.Client
		bucket string
		prefix string
		want   string
	}{
		{at("eu-central-1", ""), "shop", s3lock.DefaultPrefix, "locks/it\x00s3 eu-central-1  shop"},
		{at("us-east-1", ""), "shop", "", "it\x00s3 us-east-1  shop"},
		{at("r", "https://key:geheim@store:9000/x"), "shop", "a/", "a/it\x00s3 r store:9000 shop"},
	} {
		for range 2 { // each client has an id of its own
			client, err := s3lock.New(c.client, c.bucket, s3lock.WithPrefix(c.prefix))
			require.NoError(t, err)
			require.Equal(t, c.want, client.Mutex("it").LockKey())
			require.NoError(t, client.Close(t.Context()))
		}
	}
}
