// Package prom exports the figures of a [record.Recorder] to Prometheus: waits and holds as native
// histograms, failures by reason, waiters, holders, and the age of the oldest hold.
//
//	recorder := record.New(record.Options{})
//	prometheus.MustRegister(prom.NewCollector(recorder))
//	lock := recorder.Wrap("accounts", new(fair.Mutex))
//
// The label "lock" is the name given to Wrap. A name stands for a kind of lock, such as "account",
// and not for one key: every name costs about forty series on a server without native histograms.
// Names beyond [MaxNames] share the label [Other].
//
// # Two recorders in one process
//
// Registering the collectors of two recorders is an error, since their metrics have the same names.
// Tell them apart by a label:
//
//	jobs := prometheus.Labels{"part": "jobs"}
//	prometheus.WrapRegistererWith(jobs, registerer).MustRegister(prom.NewCollector(other))
//
// # Histograms
//
// A server that scrapes native histograms gets buckets that are at most 10 % wide. Any other
// server, and a reader of /metrics, gets one classic bucket for each power of ten from 1 µs to
// 1000 s, or the buckets of [WithBuckets]. [WithExemplars] leads from an observation to its
// trace. The histograms begin with the collector, the counters with the recorder.
//
// # Losses
//
// locks_lost_total rises at the first scrape after the loss of a lock with a lease, while its
// holder may still hang. No goroutine watches a hold.
//
// # Dashboard and alerts
//
// The folder of this package has dashboard.json for Grafana, and alerts.yml with alert rules for a
// lost lock, a long wait, an old hold, and waiters that get nowhere.
package prom
