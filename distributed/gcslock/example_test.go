package gcslock_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/gcslock"
)

func ExampleNew() {
	// Stands for google.DefaultClient(ctx, "https://www.googleapis.com/auth/devstorage.read_write")
	// of golang.org/x/oauth2/google.
	client := newFake().client()
	provider, err := gcslock.New(client, bucketName, gcslock.WithTTL(2*time.Minute), gcslock.WithLabel("report-1"))
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
	var client *http.Client
	opts := []gcslock.Option{
		gcslock.WithPrefix("team-a/locks/"),
		gcslock.WithPolling(time.Second, time.Minute),
	}
	_, err := gcslock.New(client, "my-bucket", opts...)
	fmt.Println(err)
	// Output: gcslock: nil client
}

// A test uses a server of its own, such as fake-gcs-server, which asks for no credentials.
func ExampleWithEndpoint() {
	c, err := gcslock.New(http.DefaultClient, "my-bucket", gcslock.WithEndpoint("http://localhost:4443"))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Close(context.Background()))
	// Output: <nil>
}
