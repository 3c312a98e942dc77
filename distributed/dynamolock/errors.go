package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
)

// attempt is one request.
type attempt struct {
	sent bool // perhaps: it has come to the transport
}

// options makes the client send the request once. A second one would conflict with the first one.
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
// as that of a proxy, has none.
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

// passing reports whether a request that was refused with this code may be carried out later: the
// table has no capacity to spare, or another request has the row at the moment.
func passing(code string) bool {
	switch code {
	case "TransactionConflictException", "ReplicatedWriteConflictException":
		return true
	}
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	return throttled
}

// failed returns the error of a request with what it says about the outcome. The error names the
// right that may be missing. Only an answer that blames the request says that nothing was done.
func (d *documents) failed(err error, a *attempt, right string) error {
	code, status := codeOf(err), statusOf(err)
	switch code {
	case "ConditionalCheckFailedException":
		return fmt.Errorf("%w: %w", caslock.ErrConflict, err)
	case "ResourceNotFoundException":
		err = fmt.Errorf("no such table in this region: %w", err)
	case "AccessDeniedException":
		err = fmt.Errorf("the right %s is missing: %w", right, err)
	case "ValidationException":
		err = fmt.Errorf("the table's key has to be %q alone, a string: %w", d.key, err)
	}
	err = fmt.Errorf("table %q: %w", d.table, err)
	var dial *net.OpError
	var skewed interface{ RetryableError() bool } // the client has learned the server's time from the answer
	switch {
	case !a.sent, errors.As(err, &dial) && dial.Op == "dial":
		return lease.Mark(err, lease.ErrRefused, lease.ErrUnavailable, lease.ErrUnreachable)
	case passing(code), errors.As(err, &skewed) && skewed.RetryableError():
		return lease.Mark(err, lease.ErrRefused, lease.ErrUnavailable)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return lease.Mark(err, lease.ErrUnavailable)
	case code != "" && status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return lease.Mark(err, lease.ErrRefused)
	}
	return err
}

// unread is failed for a request that changes nothing. Without an answer nothing is in doubt.
func (d *documents) unread(err error, a *attempt, right string) error {
	unanswered := statusOf(err) == 0
	err = d.failed(err, a, right)
	if unanswered {
		return lease.Mark(err, lease.ErrRefused, lease.ErrUnavailable, lease.ErrUnreachable)
	}
	return err
}
