package s3lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// documents are objects of a bucket. The version is the ETag: a hash of the data on most stores,
// and no two writes have the same data.
type documents struct {
	client *s3.Client
	bucket string
	prefix string

	trusted atomic.Bool   // the store has passed the probe, or the user knows it
	turn    chan struct{} // has room for the goroutine that probes
	verdict error         // of a probe that the store has failed. The turn is held
	blind   atomic.Bool   // the store deletes an object without comparing its ETag
}

var (
	_ caslock.Documents   = (*documents)(nil)
	_ caslock.Lister      = (*documents)(nil)
	_ caslock.Deleter     = (*documents)(nil)
	_ caslock.NameChecker = (*documents)(nil)
)

// suffix ends the keys of all locks. On a store that keeps objects as files, "a" and "a/b" can then
// both be locks.
const suffix = ".json"

const (
	// maxKey is how many bytes a key may have.
	maxKey = 1024
	// maxPart is how many bytes of a name may be between two slashes. A file system permits 255.
	// versitygw adds 28 bytes for a moment when it replaces an object, and only then.
	maxPart = 200
	// patience is for how long a request waits for its answer. The SDK would wait for ever.
	patience = 10 * time.Second
)

func (d *documents) key(name string) string { return d.prefix + name + suffix }

// CheckName is part of [caslock.NameChecker].
func (d *documents) CheckName(name string) error {
	key := d.key(name)
	switch {
	case len(key) > maxKey:
		return fmt.Errorf("its key has %d bytes, at most %d are allowed", len(key), maxKey)
	case !utf8.ValidString(key):
		return errors.New("a key must be valid UTF-8")
	case strings.ContainsFunc(key, isControl):
		return errors.New("a key must have no control characters")
	}
	for part := range strings.SplitSeq(d.prefix+name, "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New(`what is between the slashes of a key must not be empty, "." or ".."`)
		}
		if len(part) > maxPart {
			return fmt.Errorf("a part of its key has %d bytes, at most %d are allowed between slashes",
				len(part), maxPart)
		}
	}
	return nil
}

// isControl reports whether XML, in which S3 lists keys, lacks the character.
func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff }

// Load reads the object.
func (d *documents) Load(ctx context.Context, name string) ([]byte, string, error) {
	return d.load(ctx, d.key(name))
}

func (d *documents) load(ctx context.Context, key string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := attempt{reads: true}
	out, err := d.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &d.bucket, Key: &key}, a.options)
	switch {
	case classes.AmazonCode(err) == "NoSuchKey":
		return nil, "", nil
	case err != nil:
		return nil, "", d.storeError(err, &a, "s3:GetObject or s3:ListBucket")
	}
	defer out.Body.Close()
	data, err := io.ReadAll(io.LimitReader(out.Body, caslock.MaxData+1))
	if err != nil {
		return nil, "", d.storeError(err, &a, "")
	}
	return data, aws.ToString(out.ETag), nil
}

// Swap writes the object if the store finds the condition true.
func (d *documents) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	switch err := d.ensureProbe(ctx); {
	case errors.Is(err, ErrUnsafe), errors.Is(err, driver.ErrRefused):
		return "", driver.Mark(err, driver.ErrRefused)
	case err != nil: // the probe had an answer of a server in trouble, or none
		return "", driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	}
	return d.swap(ctx, d.key(name), data, version)
}

func (d *documents) swap(ctx context.Context, key string, data []byte, version string) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &d.bucket, Key: &key, Body: bytes.NewReader(data), ContentType: aws.String("application/json"),
	}
	if version == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var a attempt
	out, err := d.client.PutObject(ctx, in, a.options)
	switch {
	case conflicts(err):
		return "", caslock.ErrConflict
	case err != nil:
		return "", d.storeError(err, &a, "s3:PutObject")
	}
	return aws.ToString(out.ETag), nil
}

// Delete is part of [caslock.Deleter].
func (d *documents) Delete(ctx context.Context, name, version string) error {
	if err := d.ensureProbe(ctx); err != nil {
		return err
	}
	if d.blind.Load() {
		return errBlind
	}
	return d.delete(ctx, d.key(name), &version)
}

var errBlind = fmt.Errorf("%w: the store deletes objects without comparing their ETag", errors.ErrUnsupported)

// delete deletes the object if it has this version, or any if version is nil.
func (d *documents) delete(ctx context.Context, key string, version *string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := &s3.DeleteObjectInput{Bucket: &d.bucket, Key: &key, IfMatch: version}
	var a attempt
	_, err := d.client.DeleteObject(ctx, in, a.options)
	switch {
	case conflicts(err):
		return caslock.ErrConflict
	case classes.AmazonStatus(err) == http.StatusNotImplemented:
		return errBlind
	case err != nil:
		return d.storeError(err, &a, "s3:DeleteObject")
	}
	return nil
}

// Names is part of [caslock.Lister].
func (d *documents) Names(ctx context.Context) (names []string, err error) {
	pages := s3.NewListObjectsV2Paginator(d.client, &s3.ListObjectsV2Input{Bucket: &d.bucket, Prefix: &d.prefix})
	next := func() (*s3.ListObjectsV2Output, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		a := attempt{reads: true}
		page, err := pages.NextPage(ctx, a.options)
		if err != nil {
			err = d.storeError(err, &a, "s3:ListBucket")
		}
		return page, err
	}
	for pages.HasMorePages() {
		page, err := next()
		if err != nil {
			return names, err
		}
		for _, o := range page.Contents {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(aws.ToString(o.Key), d.prefix), suffix); ok {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// attempt is one request.
type attempt struct {
	reads bool // it changes nothing
	sent  bool // perhaps: it has come to the transport
}

// options makes the client send the request once. A repetition would conflict with the first
// request. The request needs no checksum, which some stores refuse: the signature covers the data.
func (a *attempt) options(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	mark := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
		middleware.DeserializeOutput, middleware.Metadata, error) {
		a.sent = true
		return next.HandleDeserialize(ctx, in)
	}
	o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("s3lock", mark), middleware.After)
	})
}

// conflicts reports whether err says that the object is not in the version that the request wants.
func conflicts(err error) bool {
	status := classes.AmazonStatus(err)
	return status != 0 && classOf(classes.AmazonCode(err), status) == classes.Stored
}

// storeError marks the error of a request: whether its outcome is known.
func (d *documents) storeError(err error, a *attempt, right string) error {
	code, status := classes.AmazonCode(err), classes.AmazonStatus(err)
	class := classOf(code, status)
	switch {
	case status == 0:
	case code == "NoSuchBucket":
		err = fmt.Errorf("the bucket does not exist: create it, by CreateBucket or aws s3 mb: %w", err)
	case code == "AccessDenied":
		err = fmt.Errorf("the right %s is missing: %w", right, err)
	case status == http.StatusMovedPermanently || code == "AuthorizationHeaderMalformed":
		err = fmt.Errorf("the bucket may be in another region: %w", err)
	case status == http.StatusNotImplemented:
		err = fmt.Errorf("%w: it has no conditional writes: %w", ErrUnsafe, err)
	case class == classes.Connection:
		err = fmt.Errorf("the login of the client is not accepted: %w", err)
	}
	return classes.MarkAmazon(fmt.Errorf("bucket %q: %w", d.bucket, err), class, a.sent, a.reads)
}
