package lab

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/record"
)

// State is the state of a goroutine at a time.
type State string

// The states, in the order of the legend.
const (
	Running   State = "running"
	Waiting   State = "waiting"
	Shared    State = "shared"
	Exclusive State = "exclusive"
)

// Span is a stretch of time in one state. Times are from the timeline's start.
type Span struct {
	State State         `json:"state"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Label Text          `json:"label"`
}

// Mark is something that happened at one moment.
type Mark struct {
	At    time.Duration `json:"at_ns"`
	Label Text          `json:"label"`
}

// Timeline is a picture of goroutines side by side. A record.Recorder around the locks records
// their operations.
type Timeline struct {
	Title Text    `json:"title"`
	Desc  Text    `json:"desc"`
	Lanes []*Lane `json:"lanes"`
	// Length is the end of the last span.
	Length time.Duration `json:"length_ns"`

	lab    *Lab
	ctx    context.Context
	cancel context.CancelCauseFunc
	rec    *record.Recorder
	mu     sync.Mutex
	wg     sync.WaitGroup
	byWho  sync.Map // locks.Owner to *Lane
	names  sync.Map // the English name of a lock to its Text
	failed atomic.Pointer[error]
}

// Lane is one goroutine. Its methods are for that goroutine.
type Lane struct {
	Name  Text   `json:"name"`
	Spans []Span `json:"spans"`
	Marks []Mark `json:"marks"`

	t    *Timeline
	open bool
	held []hold // oldest first
}

// hold is a lock that a lane has.
type hold struct {
	name   Text
	shared bool
}

// Timeline begins a picture.
func (l *Lab) Timeline(title, desc Text) *Timeline {
	t := &Timeline{Title: title, Desc: desc, lab: l, Lanes: []*Lane{}}
	t.ctx, t.cancel = context.WithCancelCause(l.ctx)
	t.rec = record.New(record.Options{Hook: t.hook})
	l.mu.Lock()
	l.res.Timelines = append(l.res.Timelines, t)
	l.mu.Unlock()
	return t
}

// Wrap returns l with a recorder around it, so that the operations of l are drawn.
func (t *Timeline) Wrap(name Text, l locks.TryLocker) locks.TryLocker {
	t.names.Store(name.EN, name)
	return t.rec.Wrap(name.EN, l)
}

// WrapReadWrite is Wrap for both sides of a read-write lock.
func (t *Timeline) WrapReadWrite(name Text, rw locks.ReadWriteLocker) locks.ReadWriteLocker {
	t.names.Store(name.EN, name)
	return t.rec.WrapReadWrite(name.EN, rw)
}

// Go starts a goroutine with a lane. An error or a panic of f ends the scenario, and the
// context of all.
func (t *Timeline) Go(name Text, f func(ctx context.Context, me *Lane) error) {
	me := &Lane{Name: name, t: t, Spans: []Span{}, Marks: []Mark{}}
	t.mu.Lock()
	t.Lanes = append(t.Lanes, me)
	t.mu.Unlock()
	t.wg.Go(func() {
		who := locks.CurrentOwner(nil)
		t.byWho.Store(who, me)
		me.set(t.now(), Running, works)
		defer func() {
			me.end(t.now())
			t.byWho.Delete(who)
		}()
		err := t.lab.guard(func() error { return f(t.ctx, me) })
		if err != nil {
			err = Fail(T("%s: %v", "%s：%v"), name, err)
			t.failed.CompareAndSwap(nil, &err)
			t.cancel(err)
		}
	})
}

// Wait waits for all goroutines, and ends the scenario if one failed.
func (t *Timeline) Wait() {
	t.wg.Wait()
	t.cancel(nil)
	if err := t.failed.Load(); err != nil {
		panic(aborted{*err})
	}
}

func (t *Timeline) now() time.Duration { return time.Since(t.rec.Start()) }

// hook draws what a lock does. It runs in the goroutine that does it.
func (t *Timeline) hook(e record.Event) {
	lane, ok := t.byWho.Load(e.Owner)
	if !ok {
		return
	}
	me := lane.(*Lane)
	plain := strings.TrimSuffix(strings.TrimSuffix(e.Lock, " (write)"), " (read)")
	name := Same(plain)
	if known, ok := t.names.Load(plain); ok {
		name = known.(Text)
	}
	held := hold{name, e.Shared}
	switch e.Kind {
	case record.Waiting:
		text := T("waits for %s", "等待 %s")
		if e.Shared {
			text = T("waits to read %s", "等待读 %s")
		} else if plain != e.Lock {
			text = T("waits to write %s", "等待写 %s")
		}
		label := text.With(name)
		if len(me.held) > 0 {
			label = T("%s, has %s", "%s，持有 %s").With(label, me.allHeld())
		}
		me.set(e.At, Waiting, label)
	case record.Acquired:
		if e.Holds == 1 {
			me.held = append(me.held, held)
		}
		me.holds(e.At)
	case record.Released:
		if e.Holds == 0 {
			me.lose(held)
		}
		me.holds(e.At)
	case record.Cancelled:
		me.holds(e.At)
		me.markAt(e.At, T("stops waiting for %s", "不再等待 %s").With(name))
	case record.Failed:
		me.holds(e.At)
		if e.Err == nil {
			me.markAt(e.At, T("finds %s taken", "发现 %s 已被占用").With(name))
		} else {
			me.markAt(e.At, T("is refused %s", "申请 %s 被拒绝").With(name))
		}
	case record.Refused:
		me.markAt(e.At, T("is not let unlock %s", "释放 %s 被拒绝").With(name))
	}
}

// works is the state of a lane that holds nothing and waits for nothing.
var works = T("works", "运行")

// allHeld names the locks of a lane.
func (me *Lane) allHeld() Text {
	var all []Text
	for _, h := range me.held {
		if h.shared {
			all = append(all, T("reads %s", "%s 的读锁").With(h.name))
		} else {
			all = append(all, h.name)
		}
	}
	return Join(all, T(" and ", "、"))
}

// holds sets the state that follows from the holds of me.
func (me *Lane) holds(at time.Duration) {
	if len(me.held) == 0 {
		me.set(at, Running, works)
		return
	}
	state := Shared
	for _, h := range me.held {
		if !h.shared {
			state = Exclusive
		}
	}
	text := T("has %s", "持有 %s").With(me.allHeld())
	text.EN = strings.Replace(text.EN, "has reads ", "reads ", 1)
	me.set(at, state, text)
}

func (me *Lane) lose(lost hold) {
	if i := slices.Index(me.held, lost); i >= 0 {
		me.held = slices.Delete(me.held, i, i+1)
	}
}

func (me *Lane) set(at time.Duration, s State, text Text) {
	if n := len(me.Spans); me.open && n > 0 {
		last := &me.Spans[n-1]
		if last.State == s && last.Label == text {
			return
		}
		last.To = at
	}
	me.open = true
	me.Spans = append(me.Spans, Span{State: s, From: at, Label: text})
}

func (me *Lane) end(at time.Duration) {
	if me.open {
		me.Spans[len(me.Spans)-1].To = at
		me.open = false
	}
}

func (me *Lane) markAt(at time.Duration, text Text) {
	me.Marks = append(me.Marks, Mark{At: at, Label: text})
}

// Mark notes that something happens now.
func (me *Lane) Mark(format Text, args ...any) {
	me.markAt(me.t.now(), format.With(args...))
}

// Set begins a state that no lock tells of, such as a wait for a condition.
func (me *Lane) Set(s State, text Text) { me.set(me.t.now(), s, text) }

// Is sets the state, as Set does, until done returns.
func (me *Lane) Is(s State, text Text, done func()) {
	before := me.Spans[len(me.Spans)-1]
	me.Set(s, text)
	done()
	me.Set(before.State, before.Label)
}

// Work takes some time.
func (me *Lane) Work(d time.Duration) {
	if me.t.ctx.Err() == nil {
		time.Sleep(d)
	}
}

// Compute takes some time without yielding the processor.
func (me *Lane) Compute(d time.Duration) { bench.Work(d) }

// seal drops what is too short to be seen, and finds the length.
func (t *Timeline) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, lane := range t.Lanes {
		for _, s := range lane.Spans {
			t.Length = max(t.Length, s.To)
		}
		for _, m := range lane.Marks {
			t.Length = max(t.Length, m.At)
		}
	}
	for _, lane := range t.Lanes {
		kept := []Span{}
		for _, s := range lane.Spans {
			if s.To-s.From < t.Length/500 && s.State == Waiting || s.To <= s.From {
				continue
			}
			if n := len(kept); n > 0 && kept[n-1].State == s.State && kept[n-1].Label == s.Label &&
				s.From-kept[n-1].To < t.Length/500 {
				kept[n-1].To = s.To
				continue
			}
			kept = append(kept, s)
		}
		lane.Spans = kept
	}
}

// Length is how long the span lasts.
func (s Span) Length() time.Duration { return s.To - s.From }
