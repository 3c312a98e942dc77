// Package classes sorts the error answers of servers by the thing that they refuse, for the tables
// of adapters.
//
// Adapters are modules of their own, and users combine their versions with other versions of this
// module. So a class never changes its meaning: it gets a successor beside it.
package classes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// ErrGone is matched by errors that say that all locks and holds are gone, such as after the
// deletion of a bucket.
var ErrGone = errors.New("the locks were deleted")

// Class says which thing an error answer refuses, see [driver.ErrRefused].
type Class int

const (
	// Request is this request. A repetition has the same answer.
	Request Class = iota
	// Connection is the login, or the connection as a whole.
	Connection
	// Moment is any such request, for a while. The request was not carried out.
	Moment
	// Doubt is any such request, for a while. The request may have been carried out.
	Doubt
	// Unclear is unknown. The request may have been carried out, and the answer may stay the same.
	Unclear
	// Stored refuses nothing: the answer describes what the server stores, such as another version.
	Stored
	// Unreached is any request: no connection was made.
	Unreached
	// Own is the first class that an adapter may define by itself. Mark returns such an error as it
	// is.
	Own
)

// Mark returns err with the marks of package lease for an answer of class c.
func (c Class) Mark(err error) error {
	switch c {
	case Request:
		return driver.Mark(err, driver.ErrRefused)
	case Connection:
		return driver.Mark(err, driver.ErrRefused, driver.ErrLogin)
	case Moment:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	case Doubt:
		return driver.Mark(err, driver.ErrUnavailable)
	case Unreached:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	}
	return err
}

// Table has the answers of a server: the name of each answer, its class, and why. Answers that
// another row of the table covers with the same class are not listed.
type Table []struct {
	Code  string
	Class Class
	Why   string
}

// Class returns the class of the answer called code, if t has it.
func (t Table) Class(code string) (c Class, found bool) {
	for _, r := range t {
		if r.Code == code {
			return r.Class, true
		}
	}
	return 0, false
}

// Named returns the class of the row with the code of an answer. If there is none, Named looks for
// the status, and then for the first digit of the status and xx. Without a row the class is
// Unclear.
func (t Table) Named(code string, status int) Class {
	for _, key := range []string{code, fmt.Sprint(status), fmt.Sprint(status/100, "xx")} {
		if c, ok := t.Class(key); ok {
			return c
		}
	}
	return Unclear
}

// Containing returns the class of the first row whose code is a part of text.
func (t Table) Containing(text string) (c Class, found bool) {
	for _, r := range t {
		if strings.Contains(text, r.Code) {
			return r.Class, true
		}
	}
	return 0, false
}

// Answer returns the class of the first row that fits an answer over HTTP, and Unclear if none
// does. Such a row has the status as its code, or the status and the reason, or the first digit of
// the status and xx. The text after a colon must be a part of the message.
func (t Table) Answer(status int, reason, message string) Class {
	for _, r := range t {
		head, text, _ := strings.Cut(r.Code, ": ")
		switch head {
		case fmt.Sprint(status), fmt.Sprint(status, " ", reason), fmt.Sprint(status/100, "xx"):
			if strings.Contains(message, text) {
				return r.Class
			}
		}
	}
	return Unclear
}
