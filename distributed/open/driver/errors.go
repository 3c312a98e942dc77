package driver

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jucgo/locks/distributed/lease"
)

// ErrURL is matched by errors about a wrong URL, its parameters or the options of package open, or
// about a store that the program does not import. No request was sent.
var ErrURL = errors.New("invalid URL")

// Reason returns an error that matches [ErrURL]. Its text must contain no value that may be secret.
func Reason(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrURL}, args...)...)
}

// openError returns err with the attempted operation.
func (o *Opening) openError(err error) error {
	if o.Scheme.Name == "" {
		return fmt.Errorf("open: %w", err)
	}
	return fmt.Errorf("open: %s: %w", cmp.Or(o.About, o.Scheme.Name), err)
}

// Unreachable returns the error of a store that has not answered, with the text of the driver's.
func (o *Opening) Unreachable(err error) error {
	return fmt.Errorf("%w: %w", lease.ErrUnreachable, o.Hide(err))
}

// Failed returns the error of a request, which the store has answered or not.
func (o *Opening) Failed(err error, answered bool) error {
	if answered {
		return o.Hide(err)
	}
	return o.Unreachable(err)
}

// Hide returns an error with the text of a driver's error, less the secrets. It does not wrap err:
// other errors in its tree have texts of their own, and a timeout of the driver is not the end of
// the caller's context.
func (o *Opening) Hide(err error) error {
	return errors.New(maskAll(strings.Join(strings.Fields(err.Error()), " "), o.secrets())) // some have several lines
}

// maskAll returns text without the secrets, in the spellings of URLs and of quoted text.
func maskAll(text string, secrets []string) string {
	// A secret may contain another secret. The longest goes first.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		quoted := strconv.Quote(secret)
		for _, form := range []string{
			secret, url.PathEscape(secret), url.QueryEscape(secret), quoted[1 : len(quoted)-1],
		} {
			text = mask(text, form)
		}
	}
	return text
}

// mask replaces secret in text. A secret of up to three bytes is replaced only where it is a word.
// A user called e would otherwise leave nothing to read.
func mask(text, secret string) string {
	const masked = "xxxxx"
	if len(secret) > 3 {
		return strings.ReplaceAll(text, secret, masked)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(secret)
		b.WriteString(text[:i])
		if i > 0 && isWord(text[i-1]) || end < len(text) && isWord(text[end]) {
			b.WriteString(secret)
		} else {
			b.WriteString(masked)
		}
		text = text[end:]
	}
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
