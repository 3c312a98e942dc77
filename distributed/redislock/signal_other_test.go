//go:build !unix

package redislock_test

import "testing"

func (s *server) pause(tb testing.TB) { tb.Skip("a process cannot be paused here") }
func (s *server) resume(testing.TB)   {}
