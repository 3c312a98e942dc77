package driver

// Mark returns err so that it also matches marks, such as [ErrRefused]. Its text is the text of
// err.
func Mark(err error, marks ...error) error { return marked{err, marks} }

type marked struct {
	error
	marks []error
}

func (m marked) Unwrap() []error { return append([]error{m.error}, m.marks...) }
