package fence_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/fence"
)

func TestNothingOvertakesAWriteThatHasBegun(t *testing.T) {
	var g fence.Gate
	var over atomic.Bool
	begun, goOn, ends := make(chan struct{}), make(chan struct{}), make(chan bool, 4)
	go func() {
		_ = g.Do("it", 1, func() error {
			close(begun)
			<-goOn
			over.Store(true)
			return nil
		})
	}()
	<-begun
	for _, f := range []func(){
		func() { _ = g.Do("it", 2, func() error { return nil }) },
		func() { _ = g.Check("it", 2) },
		func() { g.Highest("it") },
		func() { g.Raise("it", 2) },
	} {
		go func() {
			f()
			ends <- over.Load()
		}()
	}
	time.Sleep(20 * time.Millisecond) // in which a Gate with a mistake would let them pass
	close(goOn)
	for range cap(ends) {
		require.True(t, <-ends, "the write was not over")
	}
}
