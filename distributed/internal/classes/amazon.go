package classes

import (
	"errors"
	"io"
	"net"
)

// This file reads the errors of Amazon's SDK by their methods: this module does not require the
// SDK.

// AmazonCode returns the code of the answer, or an empty text. An answer that is not Amazon's, such
// as a proxy's answer, lacks a code.
func AmazonCode(err error) string {
	var answer interface{ ErrorCode() string }
	if !errors.As(err, &answer) || answer.ErrorCode() == "UnknownError" {
		return ""
	}
	return answer.ErrorCode()
}

// AmazonStatus returns the status of the answer, or 0.
func AmazonStatus(err error) int {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.HTTPStatusCode()
}

// MarkAmazon marks err, the error of a request whose answer is of class c. Without an answer, the
// outcome is in doubt if the request was sent and does not only read. An answer that ends in its
// middle counts as none: its status came, and the rest was lost with the connection.
//
// The SDK says which refusals a wrong clock may have caused. Their code is one of a few, such as
// RequestTimeTooSkewed and AccessDeniedException, and the time in the answer differs from the
// client's time by more than four minutes. The SDK signs the next request by the time in the
// answer. So such a refusal is for the moment. A wrong clock cannot cause a refusal of the next
// request, which therefore has the class of its own code.
func MarkAmazon(err error, c Class, sent, read bool) error {
	var skewed interface{ RetryableError() bool } // the client has learned the server's time from the answer
	switch {
	case !sent:
		return Unreached.Mark(err)
	case AmazonStatus(err) == 0, AmazonStatus(err) < 300 && isCut(err):
		return NoAnswer(err, read)
	case errors.As(err, &skewed) && skewed.RetryableError():
		return Moment.Mark(err)
	}
	return c.Mark(err)
}

// isCut reports whether err comes from the connection, and not from what the answer says.
func isCut(err error) bool {
	var op net.Error
	return errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
