package syncq

// MaxLost and MaxBarging bound barging in the queue of rwlock.StampedLock too, which is no Sync.
const (
	MaxLost    = maxLost
	MaxBarging = maxBarging
)
