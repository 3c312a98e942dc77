package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios/fourlines"
	"github.com/jucgo/locks/fair"
)

var _ = register(lab.Scenario{
	Lesson: 100,
	Name:   "all-schedules",
	Topic:  lab.T("Finding mistakes", "查找错误"),
	Title:  lab.T("All schedules of four lines", "四行代码的全部调度"),
	Question: lab.T("How does a test find a mistake that shows itself in a few orders of its goroutines only?",
		"只在少数几种 goroutine 执行顺序下才出现的错误，测试怎样才能找到？"),
	Claim: lab.T("A test runs under the schedule that happens. A mistake that needs another one stays hidden, however "+
		"often the test runs on an idle machine. Here each access to the account is locked, so the race detector "+
		"is silent, too.\n\n"+
		"A few goroutines with a few operations have a number of schedules that a computer can go through. "+
		"`explore.Run` does that: it lets one goroutine run at a time, and each operation of a lock is a "+
		"decision. It prints the shortest schedule that fails, and the option that runs this schedule again. "+
		"If none fails, the program is right under all of them.",
		"测试只会碰到当时发生的那种调度。需要另一种调度才出现的错误就一直藏着，在空闲的机器上跑多少遍"+
			"都一样。这里对账户的每次访问都加了锁，所以竞态检测器也不会报告。\n\n"+
			"几个 goroutine、每个几步操作，全部调度的数目有限，计算机可以逐一遍历。`explore.Run` 就是这样做的："+
			"每次只让一个 goroutine 运行，锁的每个操作都是一次选择。它打印失败的最短调度，以及重放该调度"+
			"的选项。如果没有一个失败，程序在所有调度下都是对的。"),
	Look: lab.T("Ann and Bob deposit one each. Each has two lines: the first reads the balance, the second writes it. The "+
		"picture plays the schedule that fails on real locks: Bob's two lines are between Ann's.\n\n"+
		"The table is the same schedule as `explore.Run` reports it. One row is one step, and one column is one "+
		"goroutine. The lab runs `go test` for it, so it needs the go command, and the sources in the working "+
		"directory. Without them the run says so, and has no table.",
		"Ann 和 Bob 各存入一元。每人有两行代码：第一行读余额，第二行写余额。图中用真实的锁重放失败的"+
			"调度：Bob 的两行夹在 Ann 的两行之间。\n\n"+
			"表格是 `explore.Run` 报告的同一个调度：一行是一步，一列是一个 goroutine。为此，实验室会运行 "+
			"`go test`，所以需要 go 命令，而且工作目录下要有源代码；没有时会在结果中说明，也没有表格。"),
	Found: lab.T(`Without a scheduler {{n .lost}} of {{n .runs}} runs lost a deposit.
{{- if .explored}} The four lines have {{n .all}} schedules, and {{n .losing}} of them lose a deposit. The search stopped
at schedule {{.found}}, and {{.replay}} plays it again. With both lines in one hold there are {{n .right}}
schedules, and none loses a deposit.{{else}} The schedules were not tried in this run: {{.why}}{{end}}`,
		`不用调度器时，{{n .runs}} 次运行中有 {{n .lost}} 次丢失存款。
{{- if .explored}}这四行代码共有 {{n .all}}
种调度，其中 {{n .losing}} 种会丢失存款。搜索停在第 {{.found}} 种调度，用 {{.replay}} 可以重放。
把两行放进同一次持有之后，共有 {{n .right}} 种调度，没有一种丢失存款。{{else}}本次运行没有尝试各
种调度：{{.why}}{{end}}`),
	Take: lab.T("Write a test of this kind for each protocol of your own: a queue, a cache, an order of locks. Two to four "+
		"goroutines with few operations are enough. `docs/guides/finding-mistakes.md` says how, and what the tools "+
		"`lockvet` and `deadlock.Check` find without such a test.",
		"为自己写的每个协议（队列、缓存、加锁顺序）写一个这样的测试，两到四个 goroutine、每个几步操作"+
			"就够了。`docs/guides/finding-mistakes.md` 说明具体做法，以及不写这样的测试时，工具 `lockvet` "+
			"和 `deadlock.Check` "+
			"能找到什么。"),
	Java: lab.Same(`// %s
@JCStressTest
@Outcome(id = "2", expect = ACCEPTABLE)
@Outcome(id = "1", expect = FORBIDDEN, desc = "a deposit is lost")
@State
class Deposits {
    @Actor void ann() { set(balance() + 1); }
    @Actor void bob() { set(balance() + 1); }
    @Arbiter void after(I_Result r) { r.r1 = balance(); }
}`).With(lab.T("jcstress runs both methods many times, and counts the outcomes.",
		"jcstress 多次运行这两个方法，统计各种结果。")),
	Shown: []string{"fourlines/fourlines.go", "fourlines/fourlines_test.go"},
	Run:   allSchedules,
})

func allSchedules(ctx context.Context, l *lab.Lab) error {
	l.Equal(1, playLostDeposit(l), lab.T("a deposit is lost if both goroutines read before either writes",
		"两个 goroutine 若都在写入之前读，就会丢失存款"))

	runs, lost := lab.Pick(l, 1_000, 20_000), 0
	for range runs {
		var a fourlines.Account
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { a.Deposit(1) })
		}
		both.Wait()
		if a.Balance() < 2 {
			lost++
		}
	}
	l.Observe("runs", runs)
	l.Observe("lost", lost)

	// A run of all scenarios should not wait for long until the test is built.
	limited, cancel := context.WithTimeout(ctx, lab.Pick(l, 25*time.Second, 45*time.Second))
	defer cancel()
	e, err := exploreFourLines(limited)
	l.Observe("explored", err == nil)
	if err != nil {
		l.Observe("why", lab.T("the go command, or the sources of the lab, were not at hand.",
			"找不到 go 命令或实验室的源代码。"))
		l.Observe("exploredError", err.Error())
		return nil
	}
	l.Observe("all", e.all)
	l.Observe("losing", e.losing)
	l.Observe("found", e.found)
	l.Observe("replay", "`"+e.replay+"`")
	l.Observe("right", e.right)
	l.Check(0 < e.losing && e.losing < e.all, lab.T("some of the schedules lose a deposit, and some do not",
		"有些调度会丢失存款，有些不会"))
	l.Check(e.found < e.all, lab.T("the search finds one of them before it has tried all",
		"搜索在尝试全部调度之前就找到了一个"))
	l.Check(e.right > 0, lab.T("with both lines in one hold, no schedule loses a deposit",
		"两行放进同一次持有之后，没有一种调度会丢失存款"))
	l.Table(e.schedule)
	l.Quote(lab.Quote{Title: lab.T("What the test said",
		"测试的输出"), Desc: lab.T("The report of explore.Run in this run.",
		"explore.Run 在本次运行中的报告。"), Text: e.report})
	return nil
}

// playLostDeposit plays the schedule that fails, and returns the balance.
func playLostDeposit(l *lab.Lab) int {
	t := l.Timeline(lab.T("The schedule that fails",
		"失败的调度"), lab.T("Bob has the account between the two lines of Ann.",
		"在 Ann 的两行之间，账户归 Bob。"))
	mu := t.Wrap(lab.T("account", "账户"), new(fair.Mutex))
	balance := 0
	read, written := make(chan struct{}), make(chan struct{})
	line := func(ctx context.Context, me *lab.Lane, access func()) error {
		defer me.Work(time.Millisecond)
		return locks.Do(ctx, mu, func(context.Context) error {
			access()
			me.Work(2 * time.Millisecond)
			return nil
		})
	}
	deposit := func(ctx context.Context, me *lab.Lane, between func()) error {
		was := 0
		if err := line(ctx, me, func() { was = balance; me.Mark(lab.T("reads %d", "读到 %d"), was) }); err != nil {
			return err
		}
		between()
		return line(ctx, me, func() { balance = was + 1; me.Mark(lab.T("writes %d", "写入 %d"), balance) })
	}
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		return deposit(ctx, me, func() {
			close(read)
			select {
			case <-written:
			case <-ctx.Done():
			}
		})
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		select {
		case <-read:
		case <-ctx.Done():
		}
		defer close(written)
		return deposit(ctx, me, func() {})
	})
	t.Wait()
	return balance
}

// explored is the output of the tests of package fourlines.
type explored struct {
	all, losing int // all schedules of the wrong program, and the schedules that lose a deposit
	found       int // the number of the schedule at which the search stops
	replay      string
	right       int // schedules of the right program
	schedule    lab.Table
	report      string
}

// exploreFourLines runs the tests of package fourlines. An error says that this was not possible.
func exploreFourLines(ctx context.Context) (explored, error) {
	out, err := said(ctx, "", nil, "go", "test", "-tags=lockexplore", "-vet=off", "-count=1", "-v",
		"github.com/jucgo/locks/cmd/locklab/internal/scenarios/fourlines")
	if err != nil {
		return explored{}, fmt.Errorf("go test: %w: %s", err, strings.TrimSpace(out))
	}
	return readExplored(strings.ReplaceAll(out, "\r\n", "\n"))
}

// same returns the output of a test, without a translation.
func same(all []string) (texts []lab.Text) {
	for _, text := range all {
		texts = append(texts, lab.Same(text))
	}
	return texts
}

// explores finds what the tests log.
var explores = regexp.MustCompile(`(?s)as expected:\n(.*?found in schedule (\d+).*?(explore\.Replay\("[^"]*"\)))\n` +
	`.*TestTwoDepositsAtOnceAreTwo\n[^\n]*no finding in (\d+) schedules, which are all that there are` +
	`.*TestAllSchedulesAreCounted\n[^\n]*no finding in (\d+) schedules, which are all that there are` +
	`.*lost in (\d+)\n`)

func readExplored(out string) (e explored, err error) {
	parts := explores.FindStringSubmatch(out)
	if parts == nil {
		return e, fmt.Errorf("the tests have another output: %s", out)
	}
	for text, number := range map[string]*int{parts[2]: &e.found, parts[4]: &e.right, parts[5]: &e.all,
		parts[6]: &e.losing} {
		if *number, err = strconv.Atoi(text); err != nil {
			return e, err
		}
	}
	e.replay = parts[3]

	// The log is indented, and the columns of the table begin where their titles do.
	var report strings.Builder
	var columns []int
	for line := range strings.Lines(parts[1]) {
		line = strings.TrimRight(strings.TrimPrefix(line, "        "), "\n")
		report.WriteString(line + "\n")
		switch {
		case strings.HasPrefix(line, "step "):
			titles := strings.Fields(line)
			e.schedule.Head = same(titles)
			for _, title := range titles {
				columns = append(columns, strings.Index(line, title))
			}
		case columns != nil && strings.TrimSpace(line) == "":
			columns = nil
		case columns != nil:
			row := make([]string, len(columns))
			for i, from := range columns {
				to := len(line)
				if i+1 < len(columns) {
					to = min(to, columns[i+1])
				}
				if from < to {
					row[i] = strings.TrimSpace(line[from:to])
				}
			}
			e.schedule.Rows = append(e.schedule.Rows, same(row))
		}
	}
	e.schedule.Title = lab.T("The shortest schedule that was found to lose a deposit",
		"找到的会丢失存款的最短调度")
	e.report = report.String()
	return e, nil
}
