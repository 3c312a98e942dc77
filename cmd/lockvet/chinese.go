package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// words are the messages of the checks and their parts, each with its translation. The first entry
// that matches counts, so an entry stands above those that match more. %s is a name, %d is a
// number, and %v is a part that other entries translate.
//
// The checks have English messages only, which other drivers show too. A test reads their source,
// and fails if a message lacks an entry here.
var words = []struct{ en, zh string }{
	{"return without %s of %s", "没有对 %[2]s 调用 %[1]s 就返回"},
	{"%s without %s of %s", "没有对 %[3]s 调用 %[2]s 就 %[1]s"},
	{"from here on, no %s of %s", "从这里开始，不再对 %[2]s 调用 %[1]s"},
	{"return after %s of %s, which the deferred %s unlocks again", "对 %[2]s 调用 %[1]s 之后返回，defer 的 %[3]s 会再解锁一次"},
	{"%s of %s, which this function has not acquired: %s, which it has acquired, stays locked",
		"对 %[2]s 调用 %[1]s，而本函数没有获取它：本函数获取的 %[3]s 仍被锁住"},
	{"returns with %s", "返回时仍持有 %s"},
	{"%s of %s, which is already unlocked", "对 %[2]s 调用 %[1]s，而它已经解锁"},
	{"%s of %s, which is read-locked", "对 %[2]s 调用 %[1]s，而持有的是它的读锁"},
	{"%s of %s, which is write-locked", "对 %[2]s 调用 %[1]s，而持有的是它的写锁"},
	{
		"deferred %s of %s in a loop: the next round waits for the return of this function",
		"在循环里 defer 了 %[2]s 的 %[1]s：下一轮要等到本函数返回",
	},
	{"acquired in each round", "每一轮都在这里加锁"},
	{"deferred %s of %s, which is held already: %s is meant", "defer 了 %[2]s 的 %[1]s，而这把锁已被持有：应为 %[3]s"},
	{"deferred %s returns the Unlock of %s, which nothing calls: %s is meant",
		"defer 的 %s 返回 %s 的 Unlock，而没有任何代码调用它：应为 %s"},
	{"Call the result of %s", "调用 %s 的结果"},
	{"Replace %s by %s", "把 %s 换成 %s"},
	{"%s of %s, which this function already holds: it waits for itself", "%[2]s 的 %[1]s：本函数已持有这把锁，会一直等自己"},
	{"%s of %s, which this function already reads: a writer that waits between them stops both",
		"%[2]s 的 %[1]s：本函数已持有读锁，两次之间若有写者等待，双方都会停住"},
	{"%s of %s under its read lock, which never gets the lock", "%[2]s 的 %[1]s：已持有它的读锁，永远得不到写锁"},
	{"%s holds %s while it calls %s, which acquires it again: it waits for itself",
		"%s 持有 %s 时调用 %s，后者再次获取它，会一直等自己"},
	{"%s holds %s while it calls %s, which acquires it again: a writer that waits between them stops both",
		"%s 持有 %s 时调用 %s，后者再次获取它：两次之间若有写者等待，双方都会停住"},
	{"%s holds %s while it calls %s, which acquires it again: it never gets the lock",
		"%s 持有 %s 时调用 %s，后者再次获取它，永远得不到写锁"},
	{"acquired again here", "在这里再次加锁"},
	{"called here too", "在这里也调用"},
	{"acquired here", "在这里加锁"},
	{"%s is acquired while %s is held, and in %s the other way round: %v; %v",
		"持有 %[2]s 时获取 %[1]s，而 %[3]s 中的顺序相反：%[4]v；%[5]v"},
	{"%s locks %s (line %d), then %v", "%s 锁定 %s（第 %d 行），然后%v"},
	{"%s locks %s (%s), then %v", "%s 锁定 %s（%s），然后%v"},
	{"calls %s, which %v", "调用 %s，后者%v"},
	{"locks %s (line %d)", "锁定 %s（第 %d 行）"},
	{"locks %s (%s), then %v", "锁定 %s（%s），然后%v"},
	{"locks %s (%s)", "锁定 %s（%s）"},
	{"also in %s: %s under %s", "%[1]s 中也是如此：持有 %[3]s 时获取 %[2]s"},
	{"%s acquires %s", "%s 获取 %s"},
	{"%s is acquired under %s", "持有 %[2]s 时获取 %[1]s"},
	{"%s calls %s of %s, which this function already holds: it waits for itself",
		"%[1]s 调用 %[3]s 的 %[2]s：本函数已持有这把锁，会一直等自己"},
	{"calls %s of %s before the deferred %s: it waits for itself", "调用 %[2]s 的 %[1]s，早于 defer 的 %[3]s，会一直等自己"},
	{"calls %s of %s before the deferred %s: a writer that waits between them stops both",
		"调用 %[2]s 的 %[1]s，早于 defer 的 %[3]s：两次之间若有写者等待，双方都会停住"},
	{"calls %s of %s before the deferred %s: it never gets the lock", "调用 %[2]s 的 %[1]s，早于 defer 的 %[3]s，永远得不到写锁"},
	{"deferred %s calls %s, which %v", "defer 的 %s 调用 %s，后者%v"},
	{"deferred %s %v", "defer 的 %s %v"},
	{"%s calls %s, which %v", "%s 调用 %s，后者%v"},
	{"%s calls %v", "%s 调用 %v"},
	{"calls %v", "调用 %v"},
	{"the error of %s is dropped: the lock may be lost or still held", "%s 的错误被丢弃：锁可能已经失去，也可能仍被持有"},
	{"the error of %s is dropped: the code goes on without the lock", "%s 的错误被丢弃：没有得到锁，代码也会继续执行"},
	{"the result of %s is dropped: the code goes on without the lock", "%s 的结果被丢弃：没有得到锁，代码也会继续执行"},
	{"the result of TryAcquireContext is dropped: the permits may be nil",
		"TryAcquireContext 的结果被丢弃：许可可能是 nil"},
	{"%s of %s with a context that has not the owner of the acquisition", "对 %[2]s 调用 %[1]s 所用的 context 里没有加锁时的所有者"},
	{"the function uses %s of the caller, which does not end when the lock is lost", "函数使用了调用者的 %s，失锁时它不会结束"},
	{"this context does", "失锁时会结束的是这个 context"},
	{"Name the context of the function %s", "把函数的 context 命名为 %s"},
	{"%s of a condition outside of a loop that checks what it waits for", "条件变量的 %s 不在检查所等条件的循环里"},
	{"%s of %s after %s was unlocked, which panics or fails: signal first",
		"在 %[3]s 解锁之后才对 %[2]s 调用 %[1]s，这会 panic 或失败：应先发信号"},
	{"%v while %s is held, which %s needs too (line %d): both wait",
		"持有 %[2]s 时%[1]v，而 %[3]s 也需要这把锁（第 %[4]d 行）：双方都在等待"},
	{"%v while %s is held, and %v", "持有 %[2]s 时%[1]v，而%[3]v"},
	{"waits here", "在这里等待"},
	{"also here, in %s", "这里也是，在 %s 中"},
	{"this would end the wait", "这里本可以结束等待"},
	{"nothing ends the wait", "没有任何代码会结束等待"},
	{"nothing receives", "没有任何代码接收"},
	{"nothing sends", "没有任何代码发送"},
	{"nothing calls Done", "没有任何代码调用 Done"},
	{"nothing signals", "没有任何代码发信号"},
	{"select", "执行 select"},
	{"selects", "执行 select"},
	{"%s selects", "%s 执行 select"},
	{"send on %s", "向 %s 发送"},
	{"sends on %s", "向 %s 发送"},
	{"%s sends on %s", "%s 向 %s 发送"},
	{"receive from %s", "从 %s 接收"},
	{"receives from %s", "从 %s 接收"},
	{"%s receives from %s", "%s 从 %s 接收"},
	{"wait for %s", "等待 %s"},
	{"waits for %s", "等待 %s"},
	{"%s waits for %s", "%s 等待 %s"},
	{"a function in %s", "%s 中的一个函数"},
	{"a function", "一个函数"},
}

// A name has spaces only if it is a call with several arguments, or describes a lock without a
// name.
const aName = `(a function(?: in \w+)?|[^ ,;]+(?:\([^()]*\)\S*)?)`

var patterns = func() (all []*regexp.Regexp) {
	for _, w := range words {
		p := strings.NewReplacer("%s", aName, "%d", `(\d+)`, "%v", "(.+?)").Replace(regexp.QuoteMeta(w.en))
		all = append(all, regexp.MustCompile("^"+p+"$"))
	}
	return all
}()

// inChinese returns a message of a check in Chinese. A message without a translation stays.
func inChinese(message string) string {
	for i, p := range patterns {
		m := p.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		args := make([]any, len(m)-1)
		for j, arg := range m[1:] {
			args[j] = inChinese(arg)
		}
		return spaced(fmt.Sprintf(verb.ReplaceAllString(words[i].zh, "%${1}s"), args...))
	}
	return message
}

var (
	verb     = regexp.MustCompile(`%(\[\d+\])?[sdv]`)
	hanWord  = regexp.MustCompile(`(\p{Han})([A-Za-z0-9_(])`)
	wordHan  = regexp.MustCompile(`([A-Za-z0-9_)\]])(\p{Han})`)
	tooWide  = regexp.MustCompile(`(\p{Han}) +(\p{Han})`)
	byMarks  = regexp.MustCompile(` *([，：；（）]) *`)
	language = regexp.MustCompile(`(?i)^zh(?:[-_.@]|$)`)
)

// spaced puts a space between Chinese and Latin letters, and none beside Chinese punctuation.
func spaced(text string) string {
	text = wordHan.ReplaceAllString(hanWord.ReplaceAllString(text, "$1 $2"), "$1 $2")
	return byMarks.ReplaceAllString(tooWide.ReplaceAllString(text, "$1$2"), "$1")
}

// chinese reports whether the environment asks for Chinese: the first of these variables that is
// set decides.
func chinese(getenv func(string) string) bool {
	return language.MatchString(cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")))
}

// translated returns d with Chinese messages.
func translated(d analysis.Diagnostic) analysis.Diagnostic {
	d.Message = inChinese(d.Message)
	d.Related = append([]analysis.RelatedInformation(nil), d.Related...)
	for i := range d.Related {
		d.Related[i].Message = inChinese(d.Related[i].Message)
	}
	d.SuggestedFixes = append([]analysis.SuggestedFix(nil), d.SuggestedFixes...)
	for i := range d.SuggestedFixes {
		d.SuggestedFixes[i].Message = inChinese(d.SuggestedFixes[i].Message)
	}
	return d
}

// printVersion answers go vet's question for the version of a tool that reports in Chinese. go vet
// keeps the reports of a version in its cache, so each language needs a version of its own.
func printVersion(w io.Writer) error {
	file, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "lockvet version devel zh buildID=zh%x\n", h.Sum(nil))
	return err
}
