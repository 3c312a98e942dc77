package prom

import (
	"context"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jucgo/locks/record"
)

const (
	// MaxNames is the number of lock names that a [Collector] tells apart. It bounds the number of
	// series if a program makes names from its input.
	MaxNames = 1000

	// Other is the label of all further names together.
	Other = "_other"
)

var (
	acquisitions = desc("acquisitions_total", "Acquisitions, with re-entries.")
	failures     = desc("acquisition_failures_total", "Acquisitions that failed, by reason.", "reason")
	lost         = desc("lost_total", "Holds that were lost, counted when they are lost.")
	refused      = desc("refused_unlocks_total", "Unlocks that returned an error, but for the first after a loss.")
	waiters      = desc("waiters", "Calls that wait for the lock now.")
	holders      = desc("holders", "Owners that hold the lock now.")
	oldest       = desc("oldest_hold_age_seconds", "Age of the oldest present hold. 0 without a holder.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("locks_"+name, help, append([]string{"lock"}, labels...), nil)
}

// Collector exports the figures of one Recorder. Make one with [NewCollector]. It is safe for
// concurrent use, and implements [prometheus.Collector].
type Collector struct {
	recorder     *record.Recorder
	waits, holds *prometheus.HistogramVec

	// byName is copied for each new name, under mu. Therefore events read it without a lock.
	mu     sync.Mutex
	byName atomic.Pointer[map[string]*series]
}

// series are the histograms with one label.
type series struct {
	label        string
	waits, holds prometheus.Observer
}

// NewCollector returns a Collector over r, for a prometheus.Registerer. Each Recorder needs one
// Collector at most, because a Collector listens to its Recorder for good.
//
// An acquisition that may wait adds one observation of a histogram, and so does the release of a
// hold. Neither allocates, except for a bucket that is new.
func NewCollector(r *record.Recorder) *Collector {
	c := &Collector{
		recorder: r,
		waits:    histogram("wait_seconds", "Duration of acquisitions that may wait, with and without success."),
		holds:    histogram("hold_seconds", "Time from the first acquisition of an owner to its last release."),
	}
	c.byName.Store(&map[string]*series{})
	r.Listen(c.observe)
	return c
}

func histogram(name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                       "locks",
		Name:                            name,
		Help:                            help,
		Buckets:                         []float64{1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramZeroThreshold:    math.Exp2(-24), // 60 ns, less than two readings of most clocks
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"lock"})
}

// observe is called for each event.
func (c *Collector) observe(_ context.Context, e record.Event) {
	switch e.Kind {
	case record.Acquired, record.Cancelled, record.Failed:
		if !e.Try {
			c.of(e.Lock).waits.Observe(e.Wait.Seconds())
		}
	case record.Released:
		if e.Holds == 0 {
			c.of(e.Lock).holds.Observe(e.Held.Seconds())
		}
	}
}

// of returns the series of a name.
func (c *Collector) of(name string) *series {
	if s := (*c.byName.Load())[name]; s != nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.byName.Load()
	if len(known) >= MaxNames && known[name] == nil || !utf8.ValidString(name) {
		name = Other // a label that is no UTF-8 is refused with a panic
	}
	if s := known[name]; s != nil {
		return s
	}
	s := &series{name, c.waits.WithLabelValues(name), c.holds.WithLabelValues(name)}
	known = maps.Clone(known)
	known[name] = s
	c.byName.Store(&known)
	return s
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{acquisitions, failures, lost, refused, waiters, holders, oldest} {
		to <- d
	}
	c.waits.Describe(to)
	c.holds.Describe(to)
}

// Collect implements [prometheus.Collector]. Its cost grows with the number of names and of present
// holds.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	since := map[string]time.Time{} // of the oldest hold, by label
	for _, h := range c.recorder.Holds() {
		label := c.of(h.Lock).label
		if _, older := since[label]; !older {
			since[label] = h.Since
		}
	}
	var others record.Stats
	for _, s := range c.recorder.Stats() {
		label := c.of(s.Lock).label
		if label != Other {
			collect(to, s, since[label])
			continue
		}
		others.Lock = Other
		others.Acquired += s.Acquired
		others.Cancelled += s.Cancelled
		others.TimedOut += s.TimedOut
		others.Failed += s.Failed
		others.Busy += s.Busy
		others.Refused += s.Refused
		others.Lost += s.Lost
		others.Waiting += s.Waiting
		others.Held += s.Held
	}
	if others.Lock != "" {
		collect(to, others, since[Other])
	}
	c.waits.Collect(to)
	c.holds.Collect(to)
}

// collect sends what is known of one label but its histograms.
func collect(to chan<- prometheus.Metric, s record.Stats, since time.Time) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		labels = append([]string{s.Lock}, labels...)
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.Lock)
	}
	counter(acquisitions, s.Acquired)
	counter(failures, s.Busy, "busy")
	counter(failures, s.TimedOut, "timeout")
	counter(failures, s.Cancelled-s.TimedOut, "cancelled")
	counter(failures, s.Failed-s.Busy, "error")
	counter(lost, s.Lost)
	counter(refused, s.Refused)
	gauge(waiters, float64(s.Waiting))
	gauge(holders, float64(s.Held))
	age := 0.0
	if !since.IsZero() {
		age = time.Since(since).Seconds()
	}
	gauge(oldest, age)
}
