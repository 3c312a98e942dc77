package prom

import (
	"context"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/internal/series"
)

const (
	// MaxNames is the number of lock names that a [Collector] tells apart. It bounds the number of
	// series if a program makes names from its input.
	MaxNames = series.Max

	// Other is the label of all further names together.
	Other = series.Other
)

// figures describe the metrics other than histograms.
type figures struct {
	acquisitions, failures, lost, refused, waiters, holders, oldest *prometheus.Desc
}

func newFigures(namespace string) figures {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		name = prometheus.BuildFQName(namespace, "", name)
		return prometheus.NewDesc(name, help, append([]string{"lock"}, labels...), nil)
	}
	return figures{
		acquisitions: desc("acquisitions_total", "Acquisitions, with re-entries."),
		failures:     desc("acquisition_failures_total", "Acquisitions that failed, by reason.", "reason"),
		lost:         desc("lost_total", "Holds that were lost, counted when they are lost."),
		refused:      desc("refused_unlocks_total", "Unlocks that returned an error, but for the first after a loss."),
		waiters:      desc("waiters", "Calls that wait for the lock now."),
		holders:      desc("holders", "Owners that hold the lock now."),
		oldest:       desc("oldest_hold_age_seconds", "Age of the oldest present hold. 0 without a holder."),
	}
}

// Option changes what a [Collector] exports.
type Option func(*options)

type options struct {
	namespace string
	buckets   []float64
	exemplar  func(context.Context) prometheus.Labels
}

// WithNamespace replaces "locks", with which all names of metrics begin. The dashboard and the
// alerts need the default.
func WithNamespace(namespace string) Option { return func(o *options) { o.namespace = namespace } }

// WithBuckets sets the upper bounds of the classic buckets, in seconds and ascending. The
// default is one for each power of ten from 1 µs to 1000 s.
func WithBuckets(bounds ...float64) Option {
	return func(o *options) { o.buckets = slices.Clone(bounds) }
}

// WithExemplars gives each observation of a histogram the labels that f returns, such as the trace
// of ctx. ctx is the context of the call. For a wait, f runs with the lock held. It should be
// quick, and must not panic. The names of the labels must be valid. Prometheus permits 128
// characters for all labels. If the labels are longer, or f returns nil, the observation gets no
// exemplar.
func WithExemplars(f func(ctx context.Context) prometheus.Labels) Option {
	return func(o *options) { o.exemplar = f }
}

// Collector exports the figures of one Recorder. Make a Collector with [NewCollector]. It is safe
// for concurrent use, and implements [prometheus.Collector]. A Collector must not be copied.
type Collector struct {
	recorder     *record.Recorder
	figures      figures
	exemplar     func(context.Context) prometheus.Labels // or nil
	waits, holds *prometheus.HistogramVec
	series       series.Series[histograms]
}

// histograms are the histograms with one label.
type histograms struct{ waits, holds prometheus.Observer }

// NewCollector returns a Collector over r, for a prometheus.Registerer. Each Recorder needs one
// Collector at most, because a Collector listens to its Recorder for good.
//
// An acquisition that may wait adds one observation of a histogram, and so does the release of a
// hold. Neither allocates, except for a bucket that is new.
func NewCollector(r *record.Recorder, opts ...Option) *Collector {
	o := options{namespace: "locks", buckets: []float64{1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000}}
	for _, opt := range opts {
		opt(&o)
	}
	c := &Collector{
		recorder: r,
		figures:  newFigures(o.namespace),
		exemplar: o.exemplar,
		waits:    o.histogram("wait_seconds", "Duration of acquisitions that may wait, with and without success."),
		holds:    o.histogram("hold_seconds", "Time from the first acquisition of an owner to its last release."),
	}
	c.series.Init(func(label string) histograms {
		return histograms{c.waits.WithLabelValues(label), c.holds.WithLabelValues(label)}
	})
	r.Listen(c.observe)
	return c
}

func (o *options) histogram(name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                       o.namespace,
		Name:                            name,
		Help:                            help,
		Buckets:                         o.buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramZeroThreshold:    math.Exp2(-24), // 60 ns, less than two readings of most clocks
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"lock"})
}

// observe is called for each event.
func (c *Collector) observe(ctx context.Context, e record.Event) {
	switch e.Kind {
	case record.Acquired, record.Cancelled, record.Failed:
		if !e.Try {
			_, to := c.series.Of(e.Lock)
			c.add(ctx, to.waits, e.Wait)
		}
	case record.Released:
		if e.Holds == 0 {
			_, to := c.series.Of(e.Lock)
			c.add(ctx, to.holds, e.Held)
		}
	}
}

// add observes d, with the exemplar of ctx if there is one.
func (c *Collector) add(ctx context.Context, to prometheus.Observer, d time.Duration) {
	if c.exemplar != nil {
		labels, runes := c.exemplar(ctx), 0
		for name, value := range labels {
			runes += utf8.RuneCountInString(name) + utf8.RuneCountInString(value)
		}
		if with, ok := to.(prometheus.ExemplarObserver); ok && labels != nil && runes <= prometheus.ExemplarMaxRunes {
			with.ObserveWithExemplar(d.Seconds(), labels)
			return
		}
	}
	to.Observe(d.Seconds())
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	f := c.figures
	for _, d := range []*prometheus.Desc{f.acquisitions, f.failures, f.lost, f.refused, f.waiters, f.holders,
		f.oldest} {
		to <- d
	}
	c.waits.Describe(to)
	c.holds.Describe(to)
}

// Collect implements [prometheus.Collector]. Its cost grows with the number of names and of present
// holds.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.series.Each(c.recorder, func(s record.Stats, since time.Time) { c.figures.collect(to, s, since) })
	c.waits.Collect(to)
	c.holds.Collect(to)
}

// collect sends all metrics of one label except its histograms.
func (f figures) collect(to chan<- prometheus.Metric, s record.Stats, since time.Time) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		labels = append([]string{s.Lock}, labels...)
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.Lock)
	}
	counter(f.acquisitions, s.Acquired)
	counter(f.failures, s.Busy, "busy")
	counter(f.failures, s.TimedOut, "timeout")
	counter(f.failures, s.Cancelled-s.TimedOut, "cancelled")
	counter(f.failures, s.Failed-s.Busy, "error")
	counter(f.lost, s.Lost)
	counter(f.refused, s.Refused)
	gauge(f.waiters, float64(s.Waiting))
	gauge(f.holders, float64(s.Held))
	age := 0.0
	if !since.IsZero() {
		age = time.Since(since).Seconds()
	}
	gauge(f.oldest, age)
}
