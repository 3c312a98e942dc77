package labtest

import (
	"regexp"
	"strings"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// Term is a word of the glossary, in both languages. One word stands for one thing.
type Term struct {
	EN string // a pattern of its forms
	ZH string // what a translation says; "|" separates the forms
}

// Glossary has the words of docs/guides/glossary.md that texts of the lab use, and the words of
// Chinese textbooks and of the documentation of the JDK and Redisson.
var Glossary = []Term{
	{`reentrant|re-entry|re-entries`, `可重入|重入`},
	{`race detector`, `竞态检测器`},
	{`data race`, `数据竞争`},
	{`non-fair|unfair`, `非公平`},
	{`read-write lock`, `读写锁`},
	{`downgrades?`, `降级`},
	{`upgrades?|upgraded`, `升级`},
	{`condition variable`, `条件变量`},
	{`watchdog`, `看门狗`},
	{`herd`, `惊群`},
	{`tokens?`, `令牌`},
	{`Redlock`, `红锁|Redlock`},
	{`spins?|spinning|spun`, `自旋`},
	{`ABA`, `ABA`},
	{`deadlock`, `死锁`},
	{`starves?|starved`, `饥饿|饿死`},
	{`compare-and-swap`, `比较并交换`},
	{`optimistic`, `乐观`},
	{`pessimistic`, `悲观`},
	{`semaphore`, `信号量`},
	{`permits?`, `许可`},
	{`leases?`, `租约`},
	{`majority|majorities`, `多数`},
	{`double-checked locking`, `双重检查锁`},
	{`(?-i:broadcasts?)`, `广播`},
	{`parked`, `挂起`},
	{`lost wake-up`, `丢失唤醒|唤醒丢失`},
	{`memory model`, `内存模型`},
	{`context switch|context switches`, `上下文切换`},
}

// Foreign are words that the lab does not use: another word of the glossary stands for the thing.
var Foreign = map[string]string{
	"协程": "goroutine", "栅栏令牌": "隔离令牌", "防护令牌": "隔离令牌", "围栏": "隔离", "公正": "公平",
	"自转":  "自旋",
	"假唤醒": "虚假唤醒", "伪唤醒": "虚假唤醒", "递归锁": "可重入锁", "租期": "租约", "看守狗": "看门狗",
	"读写互斥": "读写锁", "信号灯": "信号量", "条件量": "条件变量", "许可证": "许可", "比较和交换": "比较并交换",
	"比较交换": "比较并交换", "乐观的锁": "乐观锁", "悲观的锁": "悲观锁", "死结": "死锁", "时间线图": "时间线",
	"竞争检测器": "竞态检测器", "数据竞态": "数据竞争",
}

var termPatterns = func() (all []*regexp.Regexp) {
	for _, term := range Glossary {
		all = append(all, regexp.MustCompile(`(?i)(?:^|[^\w.-])(?:`+term.EN+`)(?:[^\w.(]|$)`))
	}
	return all
}()

// Terms returns which words of the glossary a translation has not, and which words it should not
// have. Names in code do not count as words.
func Terms(text lab.Text) (faults []string) {
	en := code.ReplaceAllString(action.ReplaceAllString(text.EN, ""), "")
	for i, term := range Glossary {
		if !termPatterns[i].MatchString(en) {
			continue
		}
		said := false
		for form := range strings.SplitSeq(term.ZH, "|") {
			said = said || strings.Contains(text.ZH, form)
		}
		if !said {
			faults = append(faults, term.EN+" is "+term.ZH)
		}
	}
	for word, instead := range Foreign {
		at := strings.Index(text.ZH, word)
		if at >= 0 && (instead == "" || !strings.HasSuffix(text.ZH[:at+len(word)], instead)) {
			faults = append(faults, word+" is "+instead)
		}
	}
	return faults
}
