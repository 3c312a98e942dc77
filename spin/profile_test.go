package spin_test

import (
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/locktest"
)

func TestTheBlockProfileHasTheWaits(t *testing.T) {
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	for _, k := range locktest.Spin() {
		t.Run(k.Name, func(t *testing.T) {
			_, name, _ := strings.Cut(k.Name, ".")
			l := k.New()
			for begun := time.Now(); !profileHas(t, "spin.(*"+name+")", "lockForTheProfile"); { // not at once
				require.Less(t, time.Since(begun), time.Minute)
				l.Lock()
				done := make(chan struct{})
				go func() { lockForTheProfile(l); l.Unlock(); close(done) }()
				for l.QueueLength() == 0 {
					time.Sleep(time.Microsecond)
				}
				l.Unlock()
				<-done
			}
		})
	}
}

// profileHas reports whether both frames are in one stack of the block profile.
func profileHas(t *testing.T, one, other string) bool {
	var profile strings.Builder
	require.NoError(t, pprof.Lookup("block").WriteTo(&profile, 1))
	for stack := range strings.SplitSeq(profile.String(), " @ ") {
		if strings.Contains(stack, one) && strings.Contains(stack, other) {
			return true
		}
	}
	return false
}

//go:noinline
func lockForTheProfile(l locktest.Lock) { l.Lock() }
