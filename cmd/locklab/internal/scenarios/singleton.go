package scenarios

import (
	"context"
	_ "embed" // for the program with the plain pointer
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/singleton"
)

var _ = register(lab.Scenario{
	Lesson: 140,
	Name:   "singleton",
	Topic:  lab.T("Without a lock", "不加锁"),
	Title:  lab.T(`A value that is made once: wrong, and right`, "只创建一次的值：错误与正确的做法"),
	Question: lab.T(`How can a program make a value once, on demand, without a lock for every later use?`,
		"怎样做到按需只创建一次，而且之后每次使用都不必加锁？"),
	Claim: lab.T("The program checks for the value, and makes it if there is none: two goroutines that check at "+
		"the same time make two. With a lock around everything the program is right, but every reader "+
		"pays for the lock. Double-checked locking checks, locks, and checks again.\n\n"+
		"Its classic form has a bug of its own: the first check reads a plain pointer while another "+
		"goroutine may write it. To allocate, to initialise and to publish are separate writes, and other "+
		"goroutines may see them in another order. Java needs volatile there. In Go it is a data race, "+
		"and `go test -race` reports it: the first check, a read by one goroutine, and the assignment, a "+
		"write by another. The first check has to be an atomic load.",
		"程序先检查值是否存在，没有就创建：两个 goroutine 同时检查，就会创建两个。整个过程都加锁是对"+
			"的，但每个读者都要为锁付出代价。双重检查锁则是先检查，再加锁，然后再检查一次。\n\n"+
			"它的经典写法自身也有缺陷：第一次检查读的是普通指针，而另一个 goroutine 可能正在写。分配、初"+
			"始化和发布是各自独立的写入，其他 goroutine 看到的顺序可能不同。Java 在这里需要 volatile。在 "+
			"Go 中这是数据竞争，`go test -race` 会报告：一个 goroutine 在第一次检查时读，另一个在赋值时写。"+
			"第一次检查必须是原子读取。"),
	Look: lab.T(`Without a lock both goroutines find nothing, and both make a value. With Lazy the second goroutine waits
for the first, and gets the same value. Later calls do not wait. If the race detector was available, a
program with the plain pointer follows, with the detector's report.`,
		`不加锁时，两个 goroutine 都发现没有值，都创建了一个。使用 Lazy 时，第二个 goroutine 等待第一个，
得到同一个值；之后的调用不再等待。如果竞态检测器可用，后面还有一个使用普通指针的程序，以及检测器
的报告。`),
	Found: lab.T(`{{.detector}} Without a lock {{.wrong}} values were made. {{n .callers}} callers of Lazy got the
same one, made {{times .right}}. After a constructor that failed the next caller tried again, and a
constructor that asked for its own value got an error.`,
		`{{.detector}} 不加锁时创建了 {{.wrong}} 个值。Lazy 的 {{n .callers}} 个调用者得到同一个值，它创建
了 {{times .right}}。构造函数失败之后，下一个调用者会重试；构造函数若索取自己正在创建的值，会得
到错误。`),
	Take: lab.T("Use `singleton.Lazy`, or `sync.OnceValue` if the constructor cannot fail and no caller has to "+
		"cancel its wait.",
		"用 `singleton.Lazy`；如果构造函数不会失败，调用者也不需要取消等待，就用 `sync.OnceValue`。"),
	Java: lab.Same(`private volatile Config instance;      // %s
Config get() {
    Config c = instance;
    if (c == null) synchronized (this) {
        c = instance;
        if (c == null) instance = c = load();
    }
    return c;
}`).With(lab.T("volatile is what makes it right", "有 volatile 才正确")),
	Run: single,
})

//lab:show

type config struct{ number int64 }

// checkThenAct is wrong: between the check and the store, others check as well.
func checkThenAct(instance *atomic.Pointer[config], load func() *config) *config {
	if c := instance.Load(); c != nil {
		return c
	}
	c := load()
	instance.Store(c)
	return c
}

// lazily is right: load runs once, and later calls are one atomic load.
func lazily(load func() *config) *singleton.Lazy[*config] {
	return singleton.New(func() (*config, error) { return load(), nil })
}

//lab:end

// plain is a program with the plain pointer. It is not part of this program, whose race detector
// would find the race.
//
//go:embed testdata/plain/main.go
var plain string

func single(ctx context.Context, l *lab.Lab) error {
	plainPointer(ctx, l)
	var made atomic.Int64
	t := l.Timeline(lab.T("Check, then act",
		"先检查，再创建"), lab.T("Both goroutines find nothing, and both make a value.",
		"两个 goroutine 都发现没有值，都创建了一个。"))
	var instance atomic.Pointer[config]
	var both sync.WaitGroup
	both.Add(2)
	seen := make([]*config, 2)
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(lab.Same(name), func(_ context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			seen[i] = checkThenAct(&instance, func() *config {
				me.Mark(lab.T("finds nothing", "没有找到"))
				both.Done()
				both.Wait()
				var c *config
				me.Is(lab.Exclusive, lab.T("makes a value", "创建一个值"), func() {
					me.Work(3 * time.Millisecond)
					c = &config{made.Add(1)}
				})
				me.Mark(lab.T("has value %d", "得到第 %d 个值"), c.number)
				return c
			})
			me.Work(time.Millisecond)
			return nil
		})
	}
	t.Wait()
	l.Check(seen[0] != seen[1], lab.T("without a lock, two goroutines can make two values",
		"不加锁时，两个 goroutine 可能创建两个值"))
	l.Observe("wrong", made.Swap(0))

	t = l.Timeline(lab.T("singleton.Lazy",
		"singleton.Lazy"), lab.T("The first makes the value, the others get the same one.",
		"第一个创建值，其余的得到同一个。"))
	var maker *lab.Lane
	making := make(chan struct{})
	lazy := lazily(func() *config {
		me := maker
		close(making)
		c := new(config)
		me.Is(lab.Exclusive, lab.T("makes the value", "创建值"), func() {
			me.Work(4 * time.Millisecond)
			c.number = made.Add(1)
		})
		return c
	})
	names := []string{"Ann", "Bob", "Cid", "Dot"}
	got := make([]*config, len(names))
	for i, name := range names {
		t.Go(lab.Same(name), func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(1+2*i) * time.Millisecond)
			me.Mark(lab.T("asks", "申请"))
			var err error
			get := func() { got[i], err = lazy.GetContext(ctx) }
			if i == 0 {
				maker = me
				get()
			} else {
				<-making
				me.Is(lab.Waiting, lab.T("waits for the value", "等待值"), get)
			}
			me.Mark(lab.T("has the value", "得到值"))
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	l.Equal([]*config{got[0], got[0], got[0], got[0]}, got, lab.T("every caller gets the same value",
		"每个调用者得到同一个值"))
	l.Equal(int64(1), made.Load(), lab.T("the value is made once", "值只创建一次"))
	l.Observe("callers", len(names))
	l.Observe("right", made.Load())

	attempts := 0
	moody := singleton.New(func() (int, error) {
		if attempts++; attempts == 1 {
			return 0, errNoLuck
		}
		return attempts, nil
	})
	_, err := moody.GetContext(ctx)
	l.Is(errNoLuck, err, lab.T("an error of the constructor goes to the caller it ran for",
		"构造函数的错误返回给触发它的调用者"))
	value, err := moody.GetContext(ctx)
	l.Must(err)
	l.Equal(2, value, lab.T("after a failure the next caller tries again", "失败之后，下一个调用者会重试"))
	var self *singleton.Lazy[int]
	self = singleton.New(func() (int, error) { return self.Get() })
	_, err = self.Get()
	l.Check(errors.Is(err, singleton.ErrRecursive), lab.T("a constructor that asks for its own value gets an error, "+
		"and does not hang", "索取自己正在创建的值的构造函数得到错误，而不会挂住"))
	return nil
}

// plainPointer runs the race detector on the plain pointer.
func plainPointer(ctx context.Context, l *lab.Lab) {
	// A minute's worth of figures should not wait for a compiler that has never built for the
	// race detector.
	ctx, cancel := context.WithTimeout(ctx, lab.Pick(l, 4*time.Second, 15*time.Second))
	defer cancel()
	report, err := raceReport(ctx)
	if err != nil {
		l.Observe("detector", lab.T("The race detector was not at hand, so what it says was not seen in this run.",
			"竞态检测器不可用，本次运行没有看到它的报告。"))
		l.Observe("detectorError", err.Error())
		return
	}
	l.Check(strings.Contains(report, "DATA RACE") && strings.Contains(report, "main.get()"),
		lab.T("the race detector objects to double-checked locking with a plain pointer",
			"竞态检测器会报告使用普通指针的双重检查锁"))
	l.Observe("detector", lab.T("The race detector objected to the plain pointer.",
		"竞态检测器报告了普通指针的问题。"))
	var numbered strings.Builder
	n := 0
	for line := range strings.Lines(plain) {
		n++
		fmt.Fprintf(&numbered, "%2d  %s", n, line)
	}
	l.Quote(lab.Quote{Title: lab.T("Double-checked locking with a plain pointer",
		"使用普通指针的双重检查锁"), Desc: lab.T("The whole program, with "+
		"the numbers of its lines.", "整个程序，带行号。"), Text: numbered.String()})
	l.Quote(lab.Quote{Title: lab.T("What the race detector said of it",
		"竞态检测器对它的报告"), Desc: lab.T("Its report in this run. Only "+
		"folders are left out.", "本次运行的报告，只略去了目录。"), Text: report})
}

var folder = regexp.MustCompile(`(?m)^(\s+)\S*[/\\]([^/\\\s]+\.go:\d+)`)

// raceReport builds the program with the plain pointer for the race detector, runs it, and
// returns what the detector says, without folders. An error says that it could not be asked.
func raceReport(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "locklab")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "plain.exe")
	if err := os.WriteFile(source, []byte(plain), 0o600); err != nil {
		return "", err
	}
	// It lacks dependencies, so neither a module nor a toolchain is fetched.
	out, err := said(ctx, dir, []string{"GO111MODULE=", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local",
		"GOPROXY=off", "CGO_ENABLED=1", "GOOS=", "GOARCH="},
		"go", "build", "-race", "-o", program, source)
	if err != nil {
		return "", fmt.Errorf("go build -race: %w: %s", err, strings.TrimSpace(out))
	}
	out, err = said(ctx, dir, []string{"GORACE=halt_on_error=1 atexit_sleep_ms=0 exitcode=66"}, program)
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 66) {
		return "", fmt.Errorf("the program with the plain pointer: %w: %s", err, strings.TrimSpace(out))
	}
	return folder.ReplaceAllString(strings.ReplaceAll(out, "\r\n", "\n"), "$1$2"), nil
}

// said runs a command, and returns all that it says.
func said(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), environment...)
	c.Cancel = func() error {
		// A go command that is interrupted tidies up behind itself.
		if c.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return c.Process.Kill()
	}
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}
