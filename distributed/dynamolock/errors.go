package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// attempt is one request.
type attempt struct {
	sent bool // perhaps: it has come to the transport
}

// options makes the client send the request once. A repetition would conflict with the first
// request.
func (a *attempt) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	mark := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
		middleware.DeserializeOutput, middleware.Metadata, error) {
		a.sent = true
		return next.HandleDeserialize(ctx, in)
	}
	o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("dynamolock", mark), middleware.After)
	})
}

// codeOf returns the code of the answer, or an empty text. An answer that is not DynamoDB's, such
// as a proxy's answer, lacks a code.
func codeOf(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) || answer.ErrorCode() == "UnknownError" {
		return ""
	}
	return answer.ErrorCode()
}

// statusOf returns the status of the answer, or 0.
func statusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// storeError marks the error of a request: whether its outcome is known. The error names the right
// that may be missing.
func (d *documents) storeError(err error, a *attempt, right string) error {
	return d.markRefusal(err, a, right, false)
}

// unread is storeError for a request that changes nothing. Without an answer nothing is in doubt.
func (d *documents) unread(err error, a *attempt, right string) error {
	return d.markRefusal(err, a, right, true)
}

func (d *documents) markRefusal(err error, a *attempt, right string, read bool) error {
	code, status := codeOf(err), statusOf(err)
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
	err = fmt.Errorf("table %q: %w", d.table, err)
	var skewed interface{ RetryableError() bool } // the client has learned the server's time from the answer
	switch {
	case !a.sent:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	case status == 0:
		return classes.NoAnswer(err, read)
	case errors.As(err, &skewed) && skewed.RetryableError():
		return classes.Moment.Mark(err)
	}
	return class.Mark(err)
}
