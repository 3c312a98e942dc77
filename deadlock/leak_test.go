//go:build goexperiment.goroutineleakprofile

package deadlock_test

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/reentrant"
)

//go:noinline
func leak(started chan<- locks.Owner) {
	var m reentrant.Mutex
	m.Lock()
	go func() { leakedWaiter(&m, started) }()
}

//go:noinline
func leakedWaiter(m *reentrant.Mutex, started chan<- locks.Owner) {
	started <- 0
	m.Lock()
}

func TestTheLeakProfileShowsAnUnreachableLocksWaiter(t *testing.T) {
	for name, on := range map[string]bool{"as it is": false, "refusing and recording": true} {
		t.Run(name, func(t *testing.T) {
			deadlock.Refuse(on)
			deadlock.Record(on)
			defer deadlock.Refuse(false)
			defer deadlock.Record(false)
			started := make(chan locks.Owner)
			leak(started)
			<-started
			deadline := time.Now().Add(time.Minute)
			for {
				time.Sleep(10 * time.Millisecond)
				runtime.GC()
				deadlock.Find()
				var b bytes.Buffer
				require.NoError(t, pprof.Lookup("goroutineleak").WriteTo(&b, 2))
				if bytes.Contains(b.Bytes(), []byte("leakedWaiter")) {
					return
				}
				require.True(t, time.Now().Before(deadline), b.String())
			}
		})
	}
}
