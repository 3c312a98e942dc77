package s3lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// BenchmarkPair has an acquisition and a release without contention, beside one read.
func BenchmarkPair(b *testing.B) {
	client := connect(b, testbed.StartVersitygw(b, bucketName))
	l := open(b, client, s3lock.WithoutProbe()).Mutex("it")
	adaptertest.Pair(b, l)
	b.Run("Mutex", func(b *testing.B) {
		for b.Loop() {
			adaptertest.Pair(b, l)
		}
	})
	b.Run("GetObject", func(b *testing.B) {
		in := &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("locks/it.json")}
		for b.Loop() {
			out, err := client.GetObject(context.Background(), in)
			require.NoError(b, err)
			out.Body.Close()
		}
	})
	b.Run("PutObject", func(b *testing.B) {
		for b.Loop() {
			put(b, client, "another", "data")
		}
	})
	b.Run("Probe", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, s3lock.Probe(context.Background(), client, bucketName))
		}
	})
}

// BenchmarkHandOver has the time from a release to the next process, which has waited for 0.4 s.
func BenchmarkHandOver(b *testing.B) {
	s := testbed.StartVersitygw(b, bucketName)
	first, second := open(b, connect(b, s)).Mutex("it"), open(b, connect(b, s)).Mutex("it")
	adaptertest.Handover(b, first, second, 400*time.Millisecond)
}
