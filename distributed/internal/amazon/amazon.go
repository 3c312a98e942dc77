// Package amazon reads the errors of Amazon's SDK for adapters, by their methods: this module does
// not require the SDK.
//
// Adapters are modules of their own, and users combine their versions with other versions of this
// module. So a function here never changes: it gets a successor beside it.
package amazon

import (
	"errors"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// Code returns the code of the answer, or an empty text. An answer that is not Amazon's, such as a
// proxy's answer, lacks a code.
func Code(err error) string {
	var answer interface{ ErrorCode() string }
	if !errors.As(err, &answer) || answer.ErrorCode() == "UnknownError" {
		return ""
	}
	return answer.ErrorCode()
}

// Status returns the status of the answer, or 0.
func Status(err error) int {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.HTTPStatusCode()
}

// Mark marks err, the error of a request whose answer is of class c. Without an answer, the
// outcome is in doubt if the request was sent and does not only read.
func Mark(err error, c classes.Class, sent, read bool) error {
	var skewed interface{ RetryableError() bool } // the client has learned the server's time from the answer
	switch {
	case !sent:
		return classes.Unreached.Mark(err)
	case Status(err) == 0:
		return classes.NoAnswer(err, read)
	case errors.As(err, &skewed) && skewed.RetryableError():
		return classes.Moment.Mark(err)
	}
	return c.Mark(err)
}
