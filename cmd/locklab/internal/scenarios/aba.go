package scenarios

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/internal/test/freelist"
)

var _ = register(lab.Scenario{
	Lesson:   130,
	Name:     "aba",
	Topic:    lab.T("Without a lock", "不加锁"),
	Title:    lab.T("ABA: the same value is not the same state", "ABA 问题：值相同，状态未必相同"),
	Question: lab.T("What does compare-and-swap not notice?", "比较并交换注意不到什么？"),
	Claim: lab.T(`Compare-and-swap has three operands: a location, the expected value, and the new one. It checks whether
the value is the one that was read, not whether it was so all the time. If the value changed from A to B
and back to A, the swap succeeds, although conclusions from the first A may be wrong by now.

A version in front tells the values apart: 1A, 2B, 3A.`,
		`比较并交换有三个操作数：位置、期望值和新值。它检查的是当前值是否等于读到的值，而不是其间是否一直
如此。如果值从 A 变成 B，又变回 A，交换会成功，而根据第一个 A 得出的结论可能早已不成立。这就是 ABA
问题。

在值前面加上版本号，就能区分它们：1A、2B、3A。`),
	Look: lab.T(`Two goroutines share a list of free slots. One is stopped while it takes slot A, after it has read that
B is next. The other one takes A and B, and puts A back. In the first picture the stopped goroutine then
makes B the head of the list, although B is in use. In the second the stamp has changed, and it reads
again.`, `两个 goroutine 共用一个空闲槽位链表。其中一个在取槽位 A 的途中被暂停，此时它已读到下一个是 B。另
一个取走 A 和 B，又放回 A。第一幅图中，被暂停的 goroutine 随后把 B 设为表头，而 B 正在使用。第二
幅图中，版本戳已经变化，它会重新读取。`),
	Found: lab.T(`The plain list handed out slot {{.twice}} twice. The stamped list, under the same schedule,
handed out no slot twice: the swap failed {{times .retries}}, and was tried again.`,
		`普通链表把槽位 {{.twice}} 发放了两次。在同样的调度下，带版本戳的链表没有重复发放：交换失败 {{times .retries}}，
然后重试。`),
	Take: lab.T("Go's collector does not reuse memory while a pointer to it exists, so pointers to new nodes are "+
		"safe: `cas.Stack` relies on that. If the program reuses memory itself, in a pool or by index, "+
		"use `cas.Packed` or `cas.Stamped`.",
		"只要还有指针指向某块内存，Go 的垃圾回收器就不会重用它，所以指向新节点的指针是安全的：`cas.Stack` "+
			"正是依靠这一点。如果程序自己重用内存（对象池，或者按下标），就用 `cas.Packed` 或 `cas.Stamped`。"),
	Java: lab.Same(`AtomicStampedReference<Node> head = ...;
int[] stamp = new int[1];
Node first = head.get(stamp);
head.compareAndSet(first, first.next, stamp[0], stamp[0] + 1);`),
	Run: aba,
})

//lab:show

// popPlain takes the first slot of a list. next may be in use by the time of the swap.
func popPlain(head *atomic.Uint32, next []atomic.Uint32) uint32 {
	for {
		first := head.Load()
		second := next[first].Load()
		if head.CompareAndSwap(first, second) {
			return first
		}
	}
}

// popStamped notices a head that was changed and changed back.
func popStamped(head *cas.Packed, next []atomic.Uint32) uint32 {
	for {
		first, stamp := head.Load()
		second := next[first].Load()
		if head.CompareAndSwap(first, second, stamp, stamp+1) {
			return first
		}
	}
}

//lab:end

func aba(_ context.Context, l *lab.Lab) error {
	plain := freelist.NewPlain(3)
	twice, looks := abaSchedule(l, lab.T("With a plain compare-and-swap",
		"普通的比较并交换"), lab.T("The stopped goroutine does not notice "+
		"that the list has changed.", "被暂停的 goroutine 没有注意到链表已经变化。"), plain, &plain.Step)
	l.Equal([]string{"B"}, twice, lab.T("a plain compare-and-swap lets a slot be handed out while it is in use",
		"普通的比较并交换会把正在使用的槽位再次发放"))
	l.Equal(1, looks, lab.T("the plain swap succeeds at the first try", "普通的交换第一次就成功"))
	stamped := freelist.NewStamped(3)
	none, looks := abaSchedule(l, lab.T("With a stamp",
		"带版本戳"), lab.T("The stamp has changed: the swap fails, and the "+
		"goroutine looks again.", "版本戳已经变化：交换失败，goroutine 重新读取。"), stamped, &stamped.Step)
	l.Equal([]string(nil), none, lab.T("with a stamp no slot is handed out while it is in use",
		"带版本戳时，正在使用的槽位不会再次发放"))
	l.Equal(2, looks, lab.T("the stamped swap fails, and is tried again", "带版本戳的交换失败，然后重试"))
	l.Observe("retries", looks-1)
	l.Observe("twice", fmt.Sprint(twice)[1:2])

	// The lines that are shown, on a list of two.
	var head atomic.Uint32
	var packed cas.Packed
	next := make([]atomic.Uint32, 2)
	next[0].Store(1)
	l.Equal(uint32(0), popPlain(&head, next), lab.T("undisturbed, the plain list gives its first slot",
		"没有干扰时，普通链表给出第一个槽位"))
	l.Equal(uint32(0), popStamped(&packed, next), lab.T("undisturbed, the stamped list gives its first slot",
		"没有干扰时，带版本戳的链表给出第一个槽位"))
	_, stamp := packed.Load()
	l.Equal(uint32(1), stamp, lab.T("every change changes the stamp", "每次改动都会改变版本戳"))
	return nil
}

// abaSchedule runs the schedule that breaks a list without stamps. It returns the slots that
// were handed out while in use, and how often the stopped goroutine looked at the head.
func abaSchedule(l *lab.Lab, title, desc lab.Text, list freelist.List, step *freelist.Step) (twice []string,
	looks int) {
	t := l.Timeline(title, desc)
	stopped, goOn := make(chan struct{}), make(chan struct{})
	name := func(slot int) string { return string(rune('A' + slot)) }
	used := map[string]bool{}
	got := func(slot int) string {
		s := name(slot)
		if used[s] {
			twice = append(twice, s)
		}
		used[s] = true
		return s
	}
	var slow *lab.Lane
	who := locks.Owner(0)
	*step = func(first, next int) {
		if locks.CurrentOwner(nil) != who {
			return
		}
		me := slow
		looks++
		me.Mark(lab.T("reads the head: %s, then %s", "读表头：%s，下一个是 %s"), name(first), name(next))
		if looks == 1 {
			me.Is(lab.Waiting, lab.T("is stopped between its read and its swap",
				"在读取和交换之间被暂停"), func() {
				close(stopped)
				<-goOn
			})
		}
	}
	finished := make(chan struct{})
	t.Go(lab.T("stopped", "被暂停者"), func(_ context.Context, me *lab.Lane) error {
		defer close(finished)
		me.Work(time.Millisecond)
		slow, who = me, locks.CurrentOwner(nil)
		slot, _ := list.Get()
		me.Mark(lab.T("has %s", "持有 %s"), got(slot))
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go(lab.T("other", "另一个"), func(_ context.Context, me *lab.Lane) error {
		<-stopped
		me.Work(time.Millisecond)
		a, _ := list.Get()
		me.Mark(lab.T("takes %s", "取走 %s"), got(a))
		me.Work(time.Millisecond)
		b, _ := list.Get()
		me.Mark(lab.T("takes %s", "取走 %s"), got(b))
		me.Work(time.Millisecond)
		delete(used, name(a))
		list.Put(a)
		me.Mark(lab.T("puts %s back", "放回 %s"), name(a))
		me.Work(time.Millisecond)
		close(goOn)
		<-finished
		me.Work(time.Millisecond)
		if c, ok := list.Get(); ok {
			me.Mark(lab.T("takes %s", "取走 %s"), got(c))
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Wait()
	return twice, looks
}
