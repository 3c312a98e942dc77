// Command nightly does a job once a night, on whichever machine comes first. Several machines start
// it at the same time, such as by cron. The lock and the results are in one bucket on S3:
//
//	0 2 * * *  BUCKET=my-bucket AWS_REGION=eu-central-1 nightly
//
// The lock alone would not be enough: a machine that comes later would do the job again. So the
// result of a night is an object that is written once. A machine that finds it has nothing to do.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/s3lock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, time.Now().UTC().Format(time.DateOnly)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, night string) error {
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := s3.NewFromConfig(settings, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil // with AWS_ENDPOINT_URL, a server of one's own
	})
	job := &job{client: client, bucket: cmp.Or(os.Getenv("BUCKET"), "nightly"), result: "results/" + night}
	if done, err := job.done(ctx); done || err != nil { // most machines on most nights: one read
		return err
	}
	// An outage of some minutes does not end the job. If this machine dies, the next machine goes
	// on after five minutes. Five minutes are soon enough at night, and cost 36 writes an hour.
	// Machines that wait ask twice a minute.
	provider, err := s3lock.New(client, job.bucket, s3lock.WithTTL(5*time.Minute),
		s3lock.WithPolling(time.Second, 30*time.Second))
	if err != nil {
		return err
	}
	defer provider.Close(context.Background())
	err = locks.Do(ctx, provider.Mutex("nightly"), job.do)
	if errors.Is(err, locks.ErrLost) {
		return fmt.Errorf("the job of this night was not finished here: %w", err)
	}
	return err
}

// job is the work of one night.
type job struct {
	client *s3.Client
	bucket string
	result string // the key
}

// done reports whether the result is there.
func (j *job) done(ctx context.Context) (bool, error) {
	_, err := j.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &j.bucket, Key: &j.result})
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// do runs while the lock is held. Its ctx ends when the lock is lost.
func (j *job) do(ctx context.Context) error {
	if done, err := j.done(ctx); done || err != nil { // another machine had the lock before
		return err
	}
	data, err := work(ctx)
	if err != nil {
		return err
	}
	hold, _ := locks.HoldFrom(ctx)
	_, err = j.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &j.bucket, Key: &j.result, Body: bytes.NewReader(data),
		// A machine that has lost the lock, and does not know it yet, overwrites nothing.
		IfNoneMatch: aws.String("*"),
		Metadata:    map[string]string{"token": strconv.FormatUint(hold.Token(), 10)},
	})
	if status(err) == http.StatusPreconditionFailed {
		return nil // another machine has finished it
	}
	return err
}

// work makes the result.
func work(ctx context.Context) ([]byte, error) {
	for part := 1; part <= 3; part++ {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond): // the work
			fmt.Println("did part", part)
		}
	}
	return []byte("the result\n"), nil
}

// status returns the status of the answer of S3, or 0.
func status(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}
