// Package cli is the command line of the lab's commands.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/report"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as from a shell, for a command that SIGINT ended
)

// Main is the command that shows a course.
func Main(course *lab.Course) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, course, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// usageError says that the command line is wrong.
type usageError struct{ error }

// wrong returns a usageError.
func wrong(text lab.Text, args ...any) error { return usageError{lab.Fail(text, args...)} }

// Unwrap returns the error without the mark.
func (e usageError) Unwrap() error { return e.error }

// settings are read from the command line.
type settings struct {
	command    string // run, list or docs
	scenarios  []*lab.Scenario
	named      bool // the scenarios were given by name
	dir        string
	html, json string
	lang       lab.Lang
	options    lab.Options
}

// run is the command, and returns its exit code.
func run(ctx context.Context, course *lab.Course, args []string, stdout, stderr io.Writer) int {
	lang, err := language(args)
	if err == nil {
		err = command(ctx, course, lang, args, stdout, stderr)
	}
	say := func(text lab.Text, args ...any) {
		fmt.Fprintln(stderr, text.With(append([]any{course.Name}, args...)...).In(lang))
	}
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		say(lab.T("%s: %v\nRun with -h for help.", "%s：%v\n加 -h 可查看用法。"), err)
		return exitUsage
	case ctx.Err() != nil:
		say(lab.T("%s: interrupted; nothing was written", "%s：已中断，没有写出任何文件"))
		return exitInterrupted
	}
	say(lab.T("%s: %v", "%s：%v"), err)
	return exitFailed
}

// language returns the language that the command line asks for, or else the environment. It reads
// the flag before all others, so that their errors and the help are in the language too.
func language(args []string) (lab.Lang, error) {
	lang := lab.LangOf(os.Getenv)
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.TrimPrefix(name, "-") != "lang" || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		if !slices.Contains(lab.Langs, lab.Lang(value)) {
			return lang, wrong(lab.T("no language %q; there are en and zh", "没有语言 %q；可选 en 和 zh"), value)
		}
		lang = lab.Lang(value)
	}
	return lang, nil
}

func command(ctx context.Context, course *lab.Course, lang lab.Lang, args []string, stdout, stderr io.Writer) error {
	s, err := parse(course, lang, args, stdout)
	if err != nil {
		return err
	}
	switch s.command {
	case "list":
		return list(course, lang, stdout)
	case "docs":
		n, err := report.WriteDocs(course, s.dir)
		if err != nil {
			return lab.Fail(lab.T("writing the chapters: %v", "写出章节时出错：%v"), err)
		}
		_, err = fmt.Fprintln(stdout, lab.T("%d chapters in %s", "%d 章已写入 %s").With(n, s.dir).In(lang))
		return err
	}
	return experiment(ctx, course, s, stdout, stderr)
}

var help = lab.T(`Usage: %[1]s [flags]                     run all scenarios
       %[1]s [flags] run NAME...         run some
       %[1]s list                        list them
       %[1]s docs DIR                    write the chapters of the documentation

Runs scenarios on real locks, checks what they teach, and leaves a page with pictures.

`, "用法：%[1]s [选项]                     运行全部场景\n"+
	"      %[1]s [选项] run NAME...         运行其中几个\n"+
	"      %[1]s list                       列出全部场景\n"+
	"      %[1]s docs DIR                   写出文档的各章\n\n"+
	"在真实的锁上运行场景，检验所教的内容，并写出带图的网页。\n\n")

// parse reads the command line. Flags may be anywhere in it. Help goes to stdout.
func parse(course *lab.Course, lang lab.Lang, args []string, stdout io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet(course.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // The caller reports errors, and in one line.
	fs.Usage = func() {}     // Called for errors too.
	fs.StringVar(&s.html, "o", course.Page, lab.T("write the page to `FILE`", "把网页写入 `FILE`").In(lang))
	fs.StringVar(&s.json, "json", "", lab.T("write the results as JSON to `FILE`, to standard output if it is -; "+
		"JSON is in English", "把结果以 JSON 写入 `FILE`；若为 -，则写到标准输出；JSON 为英文").In(lang))
	fs.Uint64Var(&s.options.Seed, "seed", 1, lab.T("what is left to chance follows from it; what the scheduler "+
		"does, does not", "随机之处由它决定；调度器的行为不由它决定").In(lang))
	fs.BoolVar(&s.options.Quick, "quick", false, lab.T("take a few seconds only, for rough figures",
		"只用几秒，数字粗略").In(lang))
	s.lang = lang
	fs.Func("lang", lab.T("speak this `LANGUAGE`, en or zh; without it LC_ALL, LC_MESSAGES or LANG decides",
		"使用的语言 `LANGUAGE`：en 或 zh；不指定时由 LC_ALL、LC_MESSAGES 或 LANG 决定").In(lang),
		func(string) error { return nil }) // language has read it.
	var words []string
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprint(stdout, help.With(course.Name).In(lang))
				var flags strings.Builder
				fs.SetOutput(&flags)
				fs.PrintDefaults()
				value := lab.T(" (default $1)", "（默认值：$1）").In(lang)
				fmt.Fprint(stdout, defaultValue.ReplaceAllString(flags.String(), value))
				return s, err
			}
			return s, wrongFlag(err)
		}
		if fs.NArg() == 0 {
			break
		}
		words = append(words, fs.Arg(0))
		rest = fs.Args()[1:]
	}
	if s.html == "" {
		return s, wrong(lab.T("-o needs the name of a file", "-o 需要一个文件名"))
	}
	s.command = "run"
	if len(words) == 0 {
		s.scenarios = course.All()
		return s, nil
	}
	s.command, words = words[0], words[1:]
	switch s.command {
	case "list":
		if len(words) > 0 {
			return s, wrong(lab.T("list takes no arguments, and was given %q",
				"list 不接受参数，却给了 %q"), words[0])
		}
	case "docs":
		if len(words) != 1 {
			return s, wrong(lab.T("docs needs one directory", "docs 需要一个目录"))
		}
		s.dir = words[0]
	case "run":
		s.named = len(words) > 0
		if !s.named {
			s.scenarios = course.All()
		}
		given := map[string]bool{}
		for _, name := range words {
			scenario, ok := course.Find(name)
			if !ok {
				return s, wrong(lab.T("no scenario %q; there are %s", "没有场景 %q；可选：%s"), name, names(course))
			}
			if !given[name] {
				s.scenarios = append(s.scenarios, scenario)
			}
			given[name] = true
		}
	default:
		if _, ok := course.Find(s.command); ok {
			return s, wrong(lab.T("no command %q; did you mean: run %s", "没有命令 %q；是否想用：run %s"), s.command,
				s.command)
		}
		return s, wrong(lab.T("no command %q", "没有命令 %q"), s.command)
	}
	return s, nil
}

// defaultValue is how package flag writes it.
var defaultValue = regexp.MustCompile(` *\(default (.*)\)`)

// flagErrors are the messages of package flag for a wrong command line.
var flagErrors = []struct {
	pattern *regexp.Regexp
	text    lab.Text
}{
	{regexp.MustCompile(`^flag provided but not defined: (.*)$`),
		lab.T("flag provided but not defined: %s", "没有选项 %s")},
	{regexp.MustCompile(`^flag needs an argument: (.*)$`), lab.T("flag needs an argument: %s", "选项 %s 需要一个值")},
	{regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?(-\w+): `),
		lab.T("invalid value %s for flag %s", "值 %s 不适用于选项 %s")},
	{regexp.MustCompile(`^bad flag syntax: (.*)$`), lab.T("bad flag syntax: %s", "选项的写法有误：%s")},
}

// wrongFlag returns the error of package flag in both languages.
func wrongFlag(err error) error {
	for _, e := range flagErrors {
		if parts := e.pattern.FindStringSubmatch(err.Error()); parts != nil {
			var args []any
			for _, part := range parts[1:] {
				args = append(args, part)
			}
			return wrong(e.text, args...)
		}
	}
	return usageError{err}
}

func names(course *lab.Course) string {
	var all []string
	for _, s := range course.All() {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

func list(course *lab.Course, lang lab.Lang, w io.Writer) error {
	var b strings.Builder
	topic := lab.Text{}
	for _, s := range course.All() {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(&b, "%s\n", topic.In(lang))
		}
		fmt.Fprintf(&b, "  %-15s %s\n", s.Name, s.Question.In(lang))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// experiment runs the scenarios, and writes what they found.
func experiment(ctx context.Context, course *lab.Course, s settings, stdout, stderr io.Writer) (err error) {
	// Whether the results can be written is found out before a minute is spent on them.
	page, err := create(s.html)
	if err != nil {
		return lab.Fail(lab.T("the page cannot be written: %v", "无法写出网页：%v"), err)
	}
	defer page.discard()
	var data *output
	if s.json != "" && s.json != "-" {
		if data, err = create(s.json); err != nil {
			return lab.Fail(lab.T("the JSON report cannot be written: %v", "无法写出 JSON 报告：%v"), err)
		}
		defer data.discard()
	}
	summary := stdout
	if s.json == "-" {
		summary = stderr // Standard output is for the data alone.
	}

	r := report.New(course, s.options)
	r.Lang = s.lang
	fmt.Fprintf(summary, "%s\n\n", lab.T("%s: %d scenarios on %s %s/%s, GOMAXPROCS %d, seed %d",
		"%s：%d 个场景，%s %s/%s，GOMAXPROCS %d，种子 %d").With(course.Name, len(s.scenarios), r.Go, r.OS, r.Arch,
		r.GOMAXPROCS, r.Seed).In(s.lang))
	if s.named {
		fmt.Fprintf(summary, "%s\n", report.Legend(s.lang))
	}
	for i, scenario := range s.scenarios {
		clear := progress(stderr, fmt.Sprintf("[%d/%d] %s ...", i+1, len(s.scenarios), scenario.Title.In(s.lang)))
		result := lab.Run(ctx, scenario, s.options)
		clear()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Add(result)
		if err := report.Text(summary, result, s.lang, s.named); err != nil {
			return lab.Fail(lab.T("the summary: %v", "写出摘要时出错：%v"), err)
		}
	}

	if err := page.write(r.HTML); err != nil {
		return err
	}
	if data != nil {
		if err := data.write(r.JSON); err != nil {
			return err
		}
	}
	if s.json == "-" {
		if err := r.JSON(stdout); err != nil {
			return err
		}
	}
	sum := []lab.Text{lab.T("%d of %d scenarios observed as taught, in %s.",
		"%[2]d 个场景中有 %[1]d 个与所教相符，用时 %[3]s。").
		With(r.Held(), len(r.Scenarios), lab.Duration(r.Elapsed.Round(10*time.Millisecond)))}
	if n := r.Open(); n > 0 {
		sum = append(sum, lab.T("%d not judged: times decide them, and this run cannot tell.",
			"%d 个未判定：它们取决于时间，本次运行无法判断。").With(n))
	}
	if n := r.Busy(); n > 0 {
		sum = append(sum, lab.T("The machine was busy during %d of them: their times are not to be trusted.",
			"其中 %d 个运行时机器很忙：它们的时间不可信。").With(n))
	}
	sum = append(sum, lab.T("The page: %s", "网页：%s").With(page.name))
	_, err = fmt.Fprintf(summary, "\n%s", report.Wrap(lab.Join(sum, lab.Text{EN: " "}).In(s.lang), 0))
	if err != nil {
		return lab.Fail(lab.T("the summary: %v", "写出摘要时出错：%v"), err)
	}
	if !r.OK {
		bad := 0
		for _, result := range r.Scenarios {
			if !result.OK {
				bad++
			}
		}
		return lab.Fail(lab.T("%d of %d scenarios were not observed as taught",
			"%[2]d 个场景中有 %[1]d 个与所教不符"), bad,
			len(r.Scenarios))
	}
	return nil
}

// progress shows what is going on if the output is a terminal.
func progress(w io.Writer, text string) (clear func()) {
	f, ok := w.(*os.File)
	if ok {
		info, err := f.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		fmt.Fprintln(w, text)
		return func() {}
	}
	fmt.Fprintf(w, "\r%s", text)
	return func() { fmt.Fprintf(w, "\r%s\r", strings.Repeat(" ", lab.Columns(text))) }
}
