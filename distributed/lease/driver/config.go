package driver

import (
	"io/fs"
	"log/slog"
	"time"
)

// Config has the settings of a lease.Client. Its options change them: a lease.Option is a function
// of a Config. Package lease has the options for users, and this package the options for adapters.
// Any func(*Config) is an option.
type Config struct {
	// ErrorPrefix is the text with which errors begin, see [WithErrorPrefix].
	ErrorPrefix string
	// Place names the servers. NamePrefix is the text that the store puts in front of a lock's
	// name. See [WithPlace].
	Place, NamePrefix string
	// TTL, Poll and ReleaseTimeout are the times of lease.WithTTL, lease.WithPoll and
	// lease.WithReleaseTimeout.
	TTL, Poll, ReleaseTimeout time.Duration
	// Margin is the time of lease.WithMargin. A negative Margin stands for the default.
	Margin time.Duration
	// MaxLocalHandoffs is the number of lease.WithMaxLocalHandoffs.
	MaxLocalHandoffs int
	// Retry is a lease.Retry.
	Retry int
	// Label is the text of lease.WithLabel. The empty text stands for the default.
	Label string
	// Logger is the logger of lease.WithLogger, or nil.
	Logger *slog.Logger
	// Wrapper is the function of lease.WithWrapper, or nil.
	Wrapper func(Store) Store
}

// WithErrorPrefix sets the text with which errors begin: the adapter's name, "lease" if not
// given.
func WithErrorPrefix(prefix string) func(*Config) {
	return func(c *Config) { c.ErrorPrefix = prefix }
}

// WithPlace says where the locks are, with the same texts in every process: they are part of
// lease.Mutex.LockKey. The text store names the servers and the database, bucket or namespace,
// without passwords. It is empty if the adapter cannot know these. In the store, prefix stands in
// front of a lock's name.
//
// locks.Multi orders locks by prefix and name. Therefore each key of the store must have one such
// text, whatever prefix a process uses. The text store is not part of the order: two processes may
// spell one server in two ways.
func WithPlace(store, prefix string) func(*Config) {
	return func(c *Config) { c.Place, c.NamePrefix = store, prefix }
}

// MutexConfig has the settings of a lock. A lease.MutexOption is a function of a MutexConfig.
type MutexConfig struct {
	// FixedTTL is the time of lease.WithFixedTTL. If it is 0, holds are renewed.
	FixedTTL time.Duration
	// Shared is set by lease.WithShared, and WithoutReentry by lease.WithoutReentry.
	Shared, WithoutReentry bool
	// Refusal is why the lock cannot be acquired, see [WithRefusal].
	Refusal error
	// Data is part of all requests for the lock, see [WithData].
	Data any
}

// WithRefusal makes all methods of the lock that return an error return err, unless err is nil.
// These methods then do not ask the store. WithRefusal is for names that the store cannot have.
// The errors match [fs.ErrInvalid].
func WithRefusal(err error) func(*MutexConfig) {
	return func(c *MutexConfig) {
		if err != nil {
			c.Refusal = Mark(err, fs.ErrInvalid) // for programs that tell wrong arguments apart
		}
	}
}

// WithData puts v into all requests for the lock, see [Request].
func WithData(v any) func(*MutexConfig) { return func(c *MutexConfig) { c.Data = v } }
