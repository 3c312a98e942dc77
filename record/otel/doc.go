// Package otel exports what a [record.Recorder] sees to OpenTelemetry: metrics of waits, holds and
// failures, and spans for waits and holds. It needs the API of OpenTelemetry only.
//
//	recorder := record.New(record.Options{})
//	err := lockotel.Instrument(recorder, lockotel.Options{})
//	lock := recorder.Wrap("accounts", new(fair.Mutex))
//	err = lockotel.Do(ctx, lock, pay) // the spans of pay are children of the hold
//
// OpenTelemetry's own package is called otel too. Import this package as lockotel.
//
// # Spans
//
// A call whose context carries a sampled span makes spans: "wait for NAME" for an acquisition that
// may wait, and "hold NAME" from the acquisition to the release. Both are children of the caller's
// span. Other calls make no spans. The plain methods Lock and Unlock make no spans either, because
// they lack a context. An acquisition that failed with an error, an unlock that was refused, and a
// hold that was lost give their span the status Error. A loss is an event "lost" of the hold as
// well. The attribute "error.type" of these spans is "timeout", "cancelled", "lost" or "_OTHER".
// [Options.MinSpan] drops the spans of short waits and holds.
//
// LockContext returns no context. Therefore spans that a section makes with the caller's
// context are siblings of the hold, although they lie inside of it in time. The span of the
// hold is exported at the unlock, as a child of the span in the context of UnlockContext. The
// loss is dated at the unlock.
//
// [Do] and [TryDo] have a context for the section. With them, spans of the section are children
// of the hold, and the loss of a lease is dated when the section's context ends.
//
// # Metrics
//
// The attribute "lock.name" is the name given to Wrap. A name stands for a kind of lock, and
// not for one key. Names beyond [MaxNames] share the name [Other] in metrics and in the names of
// spans. The attribute of a span has the name itself. Names that are not UTF-8 share the name Other
// in the attribute too, because OTLP refuses them.
package otel
