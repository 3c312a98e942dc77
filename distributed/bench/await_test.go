package bench

import (
	"context"
	"testing"
	"time"
)

// await returns when ready does without an error. It fails the test if that takes longer than a
// minute.
func await(tb testing.TB, what string, ready func(ctx context.Context) error) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(background, 2*time.Second)
		err := ready(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("%s: %v", what, err)
		}
	}
}
