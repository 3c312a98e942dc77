package scenarios

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

var _ = register(lab.Scenario{
	Lesson: 70,
	Name:   "zookeeper-herd",
	Topic:  lab.T("Waiting", "等待"),
	Title: lab.T("ZooKeeper: one node for all, or a queue of nodes",
		"ZooKeeper：共用一个节点，还是节点队列"),
	Question: lab.T("Which waiters does a release wake, if all of them watch the same node?",
		"如果所有等待者都监视同一个节点，一次释放会唤醒谁？"),
	Claim: lab.T(`On ZooKeeper a lock can be one ephemeral node: the process that creates it has the lock. When the node
is deleted, or its session ends, ZooKeeper notifies all processes that watch it. One of them creates it
again. The others have woken in vain, at every release: a herd.

With sequential nodes every process creates a node of its own, with the next number, and the lowest
number has the lock. Each process watches only the node right before its own. A release wakes one
process, in order of arrival.`,
		`在 ZooKeeper 上，锁可以是一个临时节点：谁创建了它，谁就持有锁。节点被删除或其会话结束时，ZooKeeper
通知所有监视它的进程。其中一个再次创建它，其余的都白白醒来，每次释放都是如此：这就是惊群。

使用顺序节点时，每个进程创建自己的节点，编号依次递增，编号最小的持有锁。每个进程只监视紧挨在自己
前面的节点。每次释放按到达顺序只唤醒一个进程。`),
	Look: lab.T(`This scenario runs on a model of ZooKeeper's nodes and watches inside the program, not on ZooKeeper: it
counts messages, and its times mean nothing. In the first picture every release wakes all waiters. In
the second it wakes the next one. The chart has the number of wake-ups until all have had the lock, over
the number of waiters.`,
		`本场景在程序内部的模型上运行。它模拟 ZooKeeper 的节点和监视，并不是真正的 ZooKeeper：只统计
消息数，时间没有意义。第一幅图中，每次释放都唤醒所有等待者。第二幅图中，每次只唤醒下一个。图表画
出直到全部等待者都得到过锁为止的唤醒次数，随等待者数变化。`),
	Found: lab.T(`{{n .waiters}} waiters of one node were woken {{n .herd}} times until all had had the lock, those
of sequential nodes {{n .queue}} times. At the first release it was {{n .herdFirst}} against {{n .queueFirst}}.`,
		`{{n .waiters}} 个等待者全部得到过锁为止，共用一个节点时唤醒了 {{n .herd}} 次，使用顺序节点时唤醒
了 {{n .queue}} 次。第一次释放时，两者分别是 {{n .herdFirst}} 次和 {{n .queueFirst}} 次。`),
	Take: lab.T(`Use sequential nodes, as Curator's recipes do. A single node suits only this lesson, or two or three
processes.`, `请用顺序节点，Curator 的各种锁也是如此。单个节点只适合教学，或者只有两三个进程的场合。`),
	Java: lab.Same(`InterProcessMutex lock = new InterProcessMutex(curator, "/locks/order");
lock.acquire();                    // %s`).With(lab.T("sequential nodes", "顺序节点")),
	Run: zookeeperHerd,
})

//lab:show

// byOneNode acquires the lock by creating the node that all processes share.
func byOneNode(ctx context.Context, z *znodes, woken func()) (unlock func(), err error) {
	for {
		if z.create("lock") {
			return func() { z.delete("lock") }, nil
		}
		if err := z.gone(ctx, "lock"); err != nil { // all waiters watch the same node
			return nil, err
		}
		woken()
	}
}

// byQueue acquires the lock when the caller's node is the first of all.
func byQueue(ctx context.Context, z *znodes, woken func()) (unlock func(), err error) {
	mine := z.createNext()
	for {
		before := z.before(mine)
		if before == "" {
			return func() { z.delete(mine) }, nil
		}
		if err := z.gone(ctx, before); err != nil { // each waiter watches another node
			z.delete(mine)
			return nil, err
		}
		woken()
	}
}

//lab:end

// znodes is a model of a directory of nodes with watches, of as much as the two recipes need. A
// A watch notifies once, as in ZooKeeper.
type znodes struct {
	mu      sync.Mutex
	next    int
	nodes   map[string]bool
	watches map[string][]chan struct{}
	waiting int
}

func newZnodes() *znodes {
	return &znodes{nodes: map[string]bool{}, watches: map[string][]chan struct{}{}}
}

func (z *znodes) create(name string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.nodes[name] {
		return false
	}
	z.nodes[name] = true
	return true
}

func (z *znodes) createNext() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.next++
	name := fmt.Sprintf("lock-%010d", z.next)
	z.nodes[name] = true
	return name
}

// before returns the node right before one in the order of numbers, or nothing.
func (z *znodes) before(name string) (before string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for node := range z.nodes {
		if node < name && node > before {
			before = node
		}
	}
	return before
}

// gone waits until a node is deleted. It returns at once if there is none.
func (z *znodes) gone(ctx context.Context, name string) error {
	z.mu.Lock()
	if !z.nodes[name] {
		z.mu.Unlock()
		return nil
	}
	told := make(chan struct{})
	z.watches[name] = append(z.watches[name], told)
	z.waiting++
	z.mu.Unlock()
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // The watch stays, as in ZooKeeper, until there is something to tell.
	}
}

func (z *znodes) delete(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.nodes, name)
	z.waiting -= len(z.watches[name]) // a notified waiter does not wait any more, even if it does not run yet
	for _, told := range z.watches[name] {
		close(told)
	}
	delete(z.watches, name)
}

// watching tells how many wait for a node to go.
func (z *znodes) watching() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.waiting
}

func zookeeperHerd(ctx context.Context, l *lab.Lab) error {
	counts := lab.Pick(l, []int{2, 4, 8}, []int{2, 4, 8, 16, 32})
	herd, queue := lab.Series{Name: lab.T("one node",
		"共用一个节点")}, lab.Series{Name: lab.T("sequential nodes", "顺序节点")}
	for _, n := range counts {
		all, first, err := wakeUps(ctx, l, n, byOneNode)
		if err != nil {
			return err
		}
		l.Equal(n*(n+1)/2, all, lab.T("with one node every release wakes every remaining waiter",
			"共用一个节点时，每次释放都唤醒所有剩余的等待者"))
		l.Equal(n, first, lab.T("the first release wakes all", "第一次释放唤醒所有等待者"))
		herd.Points = append(herd.Points, lab.Point{X: float64(n), Y: float64(all)})
		l.Observe("herd", all)
		l.Observe("herdFirst", first)
		if all, first, err = wakeUps(ctx, l, n, byQueue); err != nil {
			return err
		}
		l.Equal(n, all, lab.T("with sequential nodes every release wakes one",
			"使用顺序节点时，每次释放只唤醒一个"))
		l.Equal(1, first, lab.T("the first release too", "第一次释放也是如此"))
		queue.Points = append(queue.Points, lab.Point{X: float64(n), Y: float64(all)})
		l.Observe("queue", all)
		l.Observe("queueFirst", first)
		l.Observe("waiters", n)
	}
	l.Chart(lab.Chart{Title: lab.T("Wake-ups until all have had the lock",
		"全部得到过锁为止的唤醒次数"), Desc: lab.T("All wake-ups, over how many "+
		"wait for the lock, with one node and with sequential nodes.",
		"全部的唤醒次数，随等待者数变化，分别为共用一个节点和使用顺序节点。"),
		X: lab.Axis{Label: lab.T("waiters", "等待者数"), Log: true}, Y: lab.Axis{Label: lab.T("wake-ups", "唤醒次数"),
			Log: true}, Series: []lab.Series{herd, queue}})
	zookeeperPicture(l, lab.T("One node (model)",
		"共用一个节点（模型）"), lab.T("Every release wakes all waiters, and all but one wait again.",
		"每次释放都唤醒所有等待者，除了一个，其余都再次等待。"),
		byOneNode)
	order := zookeeperPicture(l, lab.T("Sequential nodes (model)",
		"顺序节点（模型）"), lab.T("Every release wakes the next one.",
		"每次释放都唤醒下一个。"), byQueue)
	l.Check(slices.IsSorted(order), lab.T("sequential nodes admit in the order of arrival",
		"顺序节点按到达顺序放行"))
	return nil
}

type recipe func(context.Context, *znodes, func()) (func(), error)

// wakeUps makes n goroutines wait for a held lock, and releases it when all that are left wait
// again. It returns all wake-ups, and the wake-ups of the first release.
func wakeUps(ctx context.Context, l *lab.Lab, n int, lock recipe) (all, first int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	z := newZnodes()
	var mu sync.Mutex
	release := make(chan struct{})
	has := make(chan struct{})
	var done sync.WaitGroup
	defer done.Wait()
	for range n + 1 {
		done.Go(func() {
			unlock, failed := lock(ctx, z, func() { mu.Lock(); all++; mu.Unlock() })
			if failed != nil {
				cancel(failed)
				return
			}
			has <- struct{}{}
			<-release
			unlock()
		})
	}
	for left := n; left >= 0; left-- {
		select {
		case <-has:
		case <-ctx.Done():
			return all, first, context.Cause(ctx)
		}
		l.Until(lab.T("all that are left wait", "剩下的都在等待"), func() bool { return z.watching() == left })
		if left == n-1 {
			mu.Lock()
			first = all
			mu.Unlock()
		}
		release <- struct{}{}
	}
	done.Wait()
	return all, first, nil
}

// zookeeperPicture draws a few of them, and returns the order in which they had the lock, by
// the order in which they came.
func zookeeperPicture(l *lab.Lab, title, desc lab.Text, lock recipe) (order []int) {
	t := l.Timeline(title, desc)
	z := newZnodes()
	for i := range 5 {
		name := lab.T("waiter %d", "等待者 %d").With(i)
		if i == 0 {
			name = lab.T("holder", "持有者")
		}
		has := make(chan struct{})
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Set(lab.Waiting, lab.T("waits for lock", "等待锁"))
			unlock, err := lock(ctx, z, func() { me.Mark(lab.T("is woken", "被唤醒")) })
			if err != nil {
				return err
			}
			me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
			order = append(order, i) // The lock guards it.
			if i == 0 {
				close(has)
				l.Until(lab.T("all wait", "全部在等待"), func() bool { return z.watching() == 4 })
			}
			me.Work(2 * time.Millisecond)
			unlock()
			me.Set(lab.Running, lab.T("works", "运行"))
			me.Work(time.Millisecond)
			return nil
		})
		if i == 0 {
			<-has
		} else {
			l.Until(lab.T("it waits", "它在等待"), func() bool { return z.watching() == i })
		}
	}
	t.Wait()
	return order
}
