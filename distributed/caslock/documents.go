package caslock

import (
	"context"
	"errors"
)

// ErrConflict is matched by the errors of [Documents.Swap] and [Deleter] that say that the document
// has another version, so that nothing was changed.
var ErrConflict = errors.New("the document has another version")

// MaxData is how many bytes a document has at most. A longer document does not belong to a lock,
// so Load may stop after MaxData + 1 bytes.
const MaxData = 16 << 10

// Documents is the interface that the author of an adapter implements: small documents by name in
// a store with conditional writes. All methods may be called concurrently, and return when ctx
// ends at the latest.
//
// Errors need no prefix. Mark them where the store's answer permits it, see [driver.Mark].
// [driver.ErrRefused] says that a write was surely not carried out, such as for want of a
// permission. [driver.ErrLogin] says that the login was refused. [driver.ErrUnavailable] says that
// the cause passes by itself. After any other error of Swap the client assumes that the document
// was replaced, or will be.
//
// A version of a name is never used again, not even after the document was deleted. Otherwise a
// write that relies on an old document replaces a new document, and a lock has two holders. A
// counter that begins with 1 in each document breaks this rule. Since all writes differ, the data
// or a hash of the data keeps this rule. So does a counter of the whole store.
//
// A Documents may implement [Watcher], [Lister], [Deleter] and [NameChecker].
type Documents interface {
	// Load returns the document called name and its version. Without a document the data and the
	// version are empty, and the error is nil. Load is linearizable: it returns the data of the
	// last Swap, by any client, that ended before Load began, or later data.
	Load(ctx context.Context, name string) (data []byte, version string, err error)

	// Swap replaces the document by data if the document has this version, in one step, and
	// returns the new version. If version is empty, Swap creates the document, unless there is
	// one. In every other case Swap changes nothing and returns an error matching [ErrConflict]:
	// the document has another version, is missing, or exists although version is empty. If the
	// answer lacks the new version, the outcome is unknown.
	//
	// Swap sends its request once. A repetition would conflict with the first request. So turn
	// off the repetitions of the store's library, and redirects.
	Swap(ctx context.Context, name string, data []byte, version string) (newVersion string, err error)
}

// Watcher is an optional interface of a [Documents] whose store tells of changes. Without it,
// waiters poll, see [WithPolling].
type Watcher interface {
	// Watch calls changed once when the watch is on, and after each change of the document from
	// then on. Watch may call changed without a reason. Watch returns when ctx ends, or when it
	// cannot go on: then it is called again, after a pause that doubles up to the longest pause
	// of [WithPolling]. While no Watch calls changed, the waiter polls.
	Watch(ctx context.Context, name string, changed func()) error
}

// Lister is an optional interface of a [Documents], which [Client.Names] needs.
type Lister interface {
	// Names returns the names of all documents.
	Names(ctx context.Context) ([]string, error)
}

// Deleter is an optional interface of a [Documents], which [Client.Sweep] needs.
type Deleter interface {
	// Delete deletes the document if the document has this version. If the document has another
	// version, or is not there, Delete returns an error matching [ErrConflict]. A document that
	// is created later under the name gets a version that was never used before, see [Documents].
	Delete(ctx context.Context, name, version string) error
}

// NameChecker is an optional interface of a [Documents] that cannot store documents of all names.
type NameChecker interface {
	// CheckName returns why no document can be called name, or nil. Empty names are refused
	// before CheckName is called.
	CheckName(name string) error
}
