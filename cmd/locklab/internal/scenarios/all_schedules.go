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
	Lesson:   100,
	Name:     "all-schedules",
	Topic:    "Finding mistakes",
	Title:    "All schedules of four lines",
	Question: "How does a test find a mistake that shows itself in a few orders of its goroutines only?",
	Claim: "A test runs under the schedule that happens. A mistake that needs another one stays hidden, however " +
		"often the test runs on an idle machine. Here each access to the account is locked, so the race detector " +
		"is silent, too.\n\n" +
		"A few goroutines with a few operations have a number of schedules that a computer can go through. " +
		"`explore.Run` does that: it lets one goroutine run at a time, and each operation of a lock is a " +
		"decision. It prints the shortest schedule that fails, and the option that runs this schedule again. " +
		"If none fails, the program is right under all of them.",
	Look: "Ann and Bob deposit one each. Each has two lines: the first reads the balance, the second writes it. The " +
		"picture plays the schedule that fails on real locks: Bob's two lines are between Ann's.\n\n" +
		"The table is the same schedule as `explore.Run` reports it. One row is one step, and one column is one " +
		"goroutine. The lab runs `go test` for it, so it needs the go command, and the sources in the working " +
		"directory. Without them the run says so, and has no table.",
	Found: `Without a scheduler {{n .lost}} of {{n .runs}} runs lost a deposit.
{{- if .explored}} The four lines have {{n .all}} schedules, and {{n .losing}} of them lose a deposit. The search stopped
at schedule {{.found}}, and {{.replay}} plays it again. With both lines in one hold there are {{n .right}}
schedules, and none loses a deposit.{{else}} The schedules were not tried in this run: {{.why}}{{end}}`,
	Take: "Write a test of this kind for each protocol of your own: a queue, a cache, an order of locks. Two to four " +
		"goroutines with few operations are enough. `docs/guides/finding-mistakes.md` says how, and what the tools " +
		"`lockvet` and `deadlock.Check` find without such a test.",
	Java: `// jcstress runs both methods many times, and counts the outcomes.
@JCStressTest
@Outcome(id = "2", expect = ACCEPTABLE)
@Outcome(id = "1", expect = FORBIDDEN, desc = "a deposit is lost")
@State
class Deposits {
    @Actor void ann() { set(balance() + 1); }
    @Actor void bob() { set(balance() + 1); }
    @Arbiter void after(I_Result r) { r.r1 = balance(); }
}`,
	Shown: []string{"fourlines/fourlines.go", "fourlines/fourlines_test.go"},
	Run:   allSchedules,
})

func allSchedules(ctx context.Context, l *lab.Lab) error {
	l.Equal(1, playLostDeposit(l), "a deposit is lost if both goroutines read before either writes")

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
		l.Observe("why", "the go command, or the sources of the lab, were not at hand.")
		l.Observe("exploredError", err.Error())
		return nil
	}
	l.Observe("all", e.all)
	l.Observe("losing", e.losing)
	l.Observe("found", e.found)
	l.Observe("replay", "`"+e.replay+"`")
	l.Observe("right", e.right)
	l.Check(0 < e.losing && e.losing < e.all, "some of the schedules lose a deposit, and some do not")
	l.Check(e.found < e.all, "the search finds one of them before it has tried all")
	l.Check(e.right > 0, "with both lines in one hold, no schedule loses a deposit")
	l.Table(e.schedule)
	l.Quote(lab.Quote{Title: "What the test said", Desc: "The report of explore.Run in this run.", Text: e.report})
	return nil
}

// playLostDeposit plays the schedule that fails, and returns the balance.
func playLostDeposit(l *lab.Lab) int {
	t := l.Timeline("The schedule that fails", "Bob has the account between the two lines of Ann.")
	mu := t.Wrap("account", new(fair.Mutex))
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
		if err := line(ctx, me, func() { was = balance; me.Mark("reads %d", was) }); err != nil {
			return err
		}
		between()
		return line(ctx, me, func() { balance = was + 1; me.Mark("writes %d", balance) })
	}
	t.Go("Ann", func(ctx context.Context, me *lab.Lane) error {
		return deposit(ctx, me, func() {
			close(read)
			select {
			case <-written:
			case <-ctx.Done():
			}
		})
	})
	t.Go("Bob", func(ctx context.Context, me *lab.Lane) error {
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

// explored is what the tests of package fourlines say.
type explored struct {
	all, losing int // schedules of the wrong program, and those that lose a deposit
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
			e.schedule.Head = strings.Fields(line)
			for _, title := range e.schedule.Head {
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
			e.schedule.Rows = append(e.schedule.Rows, row)
		}
	}
	e.schedule.Title = "The shortest schedule that was found to lose a deposit"
	e.report = report.String()
	return e, nil
}
