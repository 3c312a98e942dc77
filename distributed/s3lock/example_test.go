package s3lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/s3lock"
)

func ExampleNew() {
	client := newFake().client() // stands for s3.NewFromConfig(...)
	provider, err := s3lock.New(client, bucketName, s3lock.WithTTL(2*time.Minute), s3lock.WithLabel("report-1"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer provider.Close(ctx)
	err = locks.Do(ctx, provider.Mutex("nightly"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		fmt.Println("token", hold.Token())
		return ctx.Err() // ended, if the lock was lost
	})
	fmt.Println(err)
	// Output:
	// token 1
	// <nil>
}

// A waiter of a lock that is held for hours asks once or twice a minute, which costs a tenth.
func ExampleOption() {
	var client *s3.Client
	opts := []s3lock.Option{
		s3lock.WithPrefix("team-a/locks/"),
		s3lock.WithPolling(time.Second, time.Minute),
		s3lock.WithoutProbe(), // the store is known
	}
	_, err := s3lock.New(client, "my-bucket", opts...)
	fmt.Println(err)
	// Output: s3lock: nil client
}

// Race a store for longer than a client does before its first write.
func ExampleProbe() {
	client := newFake().client()
	for range 10 {
		err := s3lock.Probe(context.Background(), client, bucketName)
		if errors.Is(err, s3lock.ErrUnsafe) {
			fmt.Println("take another store:", err)
		}
	}
	// Output:
}
