package caslock

import (
	"context"
	"errors"
)

// ErrConflict is matched by the errors of [Documents.Swap] and [Deleter] that say that the document
// has another version, so that nothing was changed.
var ErrConflict = errors.New("the document has another version")

// MaxData is how many bytes a document has at most. What is longer is no lock's, so that a Load may
// stop after one byte more.
const MaxData = 16 << 10

// Documents is what an author implements: small documents by name in a store with conditional
// writes. All methods may be called concurrently, and return when ctx ends at the latest.
//
// Errors need no prefix. Mark them where the store's answer permits it, see [lease.Mark]. An error
// with [lease.ErrRefused] says that a write was surely not carried out, such as for want of a
// permission. With [lease.ErrLogin] it says that the login was refused. One with
// [lease.ErrUnavailable] passes by itself. After any other error of Swap the client assumes that
// the document was replaced, or will be.
//
// A version never comes again for a name, also not after the document was deleted. Otherwise a
// write that relies on an old document replaces a new one, and a lock has two holders. A counter
// that begins with 1 in each document breaks this rule. Since all writes differ, the data or a hash
// of it is such a version. So is a counter of the whole store.
//
// A Documents may implement [Watcher], [Lister], [Deleter] and [NameChecker].
type Documents interface {
	// Load returns the document called name and its version. Without a document the data and the
	// version are empty, and the error is nil. Load is linearizable: it returns what the last Swap
	// of any client has written that ended before, or something later.
	Load(ctx context.Context, name string) (data []byte, version string, err error)

	// Swap replaces the document by data if it has this version, in one step, and returns the new
	// version. If version is empty, it creates a document that is not there. If the document has
	// another version, or has one and should not be there, or the other way round, Swap changes
	// nothing and returns an error matching [ErrConflict]. If the answer has no new version, the
	// outcome is unknown.
	//
	// Swap sends its request once. A second one would conflict with the first one. So turn off
	// the repetitions of the store's library, and redirects.
	Swap(ctx context.Context, name string, data []byte, version string) (newVersion string, err error)
}

// Watcher is an optional interface of a [Documents] whose store tells of changes. Without it,
// waiters poll, see [WithPolling].
type Watcher interface {
	// Watch calls changed once when it is on, and after each change of the document from then on.
	// It may call it without a reason. It returns when ctx ends, or when it cannot go on: then it
	// is called again, after a pause that doubles up to the longest one of [WithPolling]. While no
	// Watch calls changed, the waiter polls.
	Watch(ctx context.Context, name string, changed func()) error
}

// Lister is an optional interface of a [Documents], which [Client.Names] needs.
type Lister interface {
	// Names returns the names of all documents.
	Names(ctx context.Context) ([]string, error)
}

// Deleter is an optional interface of a [Documents], which [Client.Sweep] needs.
type Deleter interface {
	// Delete deletes the document if it has this version. If it has another one, or is not there,
	// it returns an error matching [ErrConflict]. A document that is created later under the name
	// has a version that none had before, see [Documents].
	Delete(ctx context.Context, name, version string) error
}

// NameChecker is an optional interface of a [Documents] that can have no document of some names.
type NameChecker interface {
	// CheckName returns why no document can be called name, or nil. An empty name is refused
	// without it.
	CheckName(name string) error
}
