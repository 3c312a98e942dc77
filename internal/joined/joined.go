// Package joined joins errors in one line. The text of errors.Join has a line for each error, which
// a log takes for unrelated lines.
package joined

import "strings"

// Errors returns an error that wraps all of errs but nil, like errors.Join. Its text is one line:
// the parts are separated by semicolons. It returns nil without an error, and a single error as it
// is.
func Errors(errs ...error) error {
	var parts []error
	for _, err := range errs {
		if err != nil {
			parts = append(parts, err)
		}
	}
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	return &joined{parts}
}

type joined struct{ parts []error }

func (j *joined) Unwrap() []error { return j.parts }

// Error joins the lines of a part too: it may be of errors.Join, in a function of the program.
func (j *joined) Error() string {
	texts := make([]string, 0, len(j.parts))
	for _, err := range j.parts {
		for line := range strings.Lines(err.Error()) {
			if line = strings.TrimSpace(line); line != "" {
				texts = append(texts, line)
			}
		}
	}
	return strings.Join(texts, "; ")
}
