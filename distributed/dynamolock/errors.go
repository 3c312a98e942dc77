package dynamolock

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// attempt is one request.
type attempt struct {
	reads bool // it changes nothing
	sent  bool // perhaps: it has come to the transport
}

// once makes the client send the request once. A repetition would conflict with the first request.
func (a *attempt) once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	a.noteSending(o)
}

// noteSending notes whether the request is sent. The client repeats it as it does by itself.
func (a *attempt) noteSending(o *dynamodb.Options) {
	mark := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
		middleware.DeserializeOutput, middleware.Metadata, error) {
		a.sent = true
		return next.HandleDeserialize(ctx, in)
	}
	o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("dynamolock", mark), middleware.After)
	})
}

// storeError marks the error of a request: whether its outcome is known. The error names the right
// that may be missing.
func (d *documents) storeError(err error, a *attempt, right string) error {
	code, status := classes.AmazonCode(err), classes.AmazonStatus(err)
	class := classOf(code, status)
	switch {
	case status == 0:
	case class == classes.Stored:
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	case code == "ResourceNotFoundException":
		err = fmt.Errorf("no such table in this region: call CreateTable, or give create=true in the URL: %w", err)
	case code == "AccessDeniedException":
		err = fmt.Errorf("the right %s is missing: %w", right, err)
	case code == "ValidationException":
		err = fmt.Errorf("the table's key has to be %q alone, a string: %w", d.key, err)
	case class == classes.Connection:
		err = fmt.Errorf("the login of the client is not accepted: %w", err)
	}
	return classes.MarkAmazon(fmt.Errorf("table %q: %w", d.table, err), class, a.sent, a.reads)
}
