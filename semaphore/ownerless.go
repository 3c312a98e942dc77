package semaphore

import "github.com/jucgo/locks/internal/ownerless"

// Package deadlock says in tests that it does not see the waits for locks of this package.
var _ = ownerless.Has("semaphore")
