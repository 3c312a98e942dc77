// Package unheld makes the errors of operations that need a hold and have none. They match
// locks.ErrNotHeld. Their text names the holder, or says that the lock is free, as far as the
// caller knows.
package unheld

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Err is locks.ErrNotHeld. It is here because package locks imports this package.
var Err = errors.New("lock not held by the caller")

// Because returns Err with a reason.
func Because(reason string) error { return failure(": " + reason) }

// Free returns the error of an operation on a free lock. The name of the lock has an article.
func Free(lock string) error { return Because(lock + " is free") }

// Owner stands for locks.Owner, since package locks imports this package.
type Owner interface {
	comparable
	fmt.Stringer
}

// By returns the error of caller, which lacks a hold, while holders have holds. The state is the
// text before the holders, such as "the lock is held by", and where the text behind them.
//
// The holders are asked for after the operation has failed. If caller is one of them, another
// goroutine of that owner has acquired the lock in between.
func By[O Owner](caller O, state, where string, holders ...O) error {
	for _, o := range holders {
		if o == caller {
			return Because("another goroutine of " + o.String() + " has acquired the lock meanwhile")
		}
	}
	return failure(", " + caller.String() + ": " + state + " " + list(holders) + where +
		"; a hold belongs to the goroutine that acquired it, or to an owner (locks.WithOwner)")
}

// listed is how many holders a text names.
const listed = 3

func list[O Owner](holders []O) string {
	names := make([]string, 0, listed)
	for _, o := range holders[:min(len(holders), listed)] {
		names = append(names, o.String())
	}
	text := strings.Join(names, ", ")
	if more := len(holders) - listed; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// failure is Err with an additional text.
type failure string

func (f failure) Error() string { return Err.Error() + string(f) }
func (f failure) Unwrap() error { return Err }
