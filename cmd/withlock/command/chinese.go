package command

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	safe "github.com/jucgo/locks/internal/terminal"
)

// language is Chinese if it is true, and English otherwise.
type language bool

// of returns an English text of the help or the manual in the language.
func (l language) of(text string) string {
	if l {
		if zh, ok := inChinese[text]; ok {
			return zh
		}
	}
	return text
}

// translate puts the texts of all commands into the language.
func (l language) translate(root *cli.Command) {
	if !l {
		return
	}
	seen := map[cli.Flag]bool{} // several commands have one flag
	for _, c := range append(root.Commands, root) {
		c.Usage, c.Description = l.of(c.Usage), l.of(c.Description)
		for _, f := range c.Flags {
			if seen[f] {
				continue
			}
			seen[f] = true
			switch f := f.(type) {
			case *cli.StringFlag:
				f.Usage, f.DefaultText = l.of(f.Usage), l.of(f.DefaultText)
			case *cli.Int64Flag:
				f.Usage, f.DefaultText = l.of(f.Usage), l.of(f.DefaultText)
			case *cli.BoolFlag:
				f.Usage, f.DefaultText = l.of(f.Usage), l.of(f.DefaultText)
			case *timeFlag:
				f.Usage, f.DefaultText = l.of(f.Usage), l.of(f.DefaultText)
			}
		}
	}
}

// helpOfFlags returns the help of a command in Chinese, since package cli knows English only.
func (l language) helpOfFlags(c *cli.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("名称：\n   withlock %s - %s\n\n用法：\n   %s", c.Name, c.Usage,
		strings.TrimSpace("withlock "+c.Name+" [选项] "+c.ArgsUsage))
	if c.Description != "" {
		line("\n说明：\n%s", l.filled(c.Description, "   ", helpWidth))
	}
	line("\n选项：")
	width := 0
	var names, texts []string
	for _, f := range c.Flags {
		tag, text, _ := strings.Cut(flagText(f, l), "\n")
		tag = strings.NewReplacer(".B ", "", `\-`, "-", `\fI`, "", `\fR`, "").Replace(tag)
		names, texts = append(names, tag), append(texts, strings.NewReplacer(`\-`, "-", `\:`, "", `\e`, `\`).Replace(text))
		width = max(width, len(tag))
	}
	names, texts = append(names, "-help, -h"), append(texts, "显示帮助")
	width = max(width, len("-help, -h"))
	for i, name := range names {
		indent := strings.Repeat(" ", width+5)
		text := l.filled(texts[i], indent, helpWidth)
		line("   %-*s  %s", width, name, strings.TrimPrefix(text, indent))
	}
	return b.String()
}

// filled is filled of the language: lines of Chinese can end behind each character, but not before
// punctuation.
func (l language) filled(text, indent string, width int) string {
	if !l {
		return filled(text, indent, width)
	}
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(indent)
		used := len(indent)
		for _, piece := range pieces(paragraph) {
			if n := safe.Columns(strings.TrimRight(piece, " ")); used+n > width && used > len(indent) {
				text := strings.TrimRight(b.String(), " ")
				b.Reset()
				b.WriteString(text + "\n" + indent)
				used = len(indent)
			}
			b.WriteString(piece)
			used += safe.Columns(piece)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// closing punctuation does not begin a line.
const closingMarks = "，。：；、）？！"

// pieces cuts a text where a line may end.
func pieces(text string) (all []string) {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	begin := 0
	for i := range runes {
		if i+1 < len(runes) && (strings.ContainsRune(closingMarks, runes[i+1]) || runes[i+1] == ' ' ||
			runes[i] != ' ' && !(safe.Wide(runes[i]) || safe.Wide(runes[i+1])) || runes[i] == '（') {
			continue
		}
		all = append(all, string(runes[begin:i+1]))
		begin = i + 1
	}
	return all
}

// breakable lets lines of the manual end between Chinese characters.
func (l language) breakable(text string) string {
	if !l {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(strings.Join(pieces(line), `\:`), ` \:`, " ")
	}
	return strings.Join(lines, "\n")
}

// inChinese has the texts of the help and the manual with their translations. A test fails if a
// text has none, or if the two differ in their numbers, names or verbs.
var inChinese = map[string]string{
	about: `withlock 持锁运行一条命令，使这条命令同一时间只在多台机器中的一台上运行。锁保存在这些机器都能访问的存储里，例如 Redis 服务器或 PostgreSQL 数据库。每个名字就是一把锁，无需事先准备。

用 -store 或环境变量 WITHLOCK_STORE 给出存储的 URL。带密码的 URL 应放在环境变量里：同一台机器上的其他用户看得到命令行。`,
	times: `时间是秒数（10、0.5），或者带单位：500ms、10s、5m、1h30m。`,

	"Wait for the lock, then run a backup:":              "等到锁，然后运行备份：",
	"Leave it if another machine makes the backup:":      "如果另一台机器正在备份，就不做：",
	"Wait for ten minutes at most:":                      "最多等十分钟：",
	"Run three commands of this name at a time at most:": "这个名字的命令同时最多运行三条：",
	"Keep a program running on one of several machines:": "让一个程序始终在多台机器中的一台上运行：",
	"See who holds a lock, and who waits:":               "查看谁持有锁，谁在等待：",
	"List the locks that begin with shop:":               "列出名字以 shop 开头的锁：",
	"Free a lock whose holder is gone for good:":         "释放持有者再也不会回来的锁：",

	"a directory of this machine":                       "本机的一个目录",
	"a file of SQLite":                                  "SQLite 的文件",
	"MySQL or MariaDB":                                  "MySQL 或 MariaDB",
	"Redis or Valkey":                                   "Redis 或 Valkey",
	"the same, with TLS":                                "Redis 或 Valkey，使用 TLS",
	"the master behind sentinels":                       "哨兵背后的主节点",
	"a cluster of Redis":                                "Redis 集群",
	"an agent of Consul":                                "Consul 的 agent",
	"Amazon S3, and stores like it":                     "Amazon S3 及兼容的存储",
	"Lease objects of Kubernetes":                       "Kubernetes 的 Lease 对象",
	storesNote:                                          "问号后面的参数（例如 ?ttl=30s）见手册：" + openPage,
	"Success. For run and lead: the command succeeded.": "成功。对 run 和 lead：命令成功。",
	"who, force: the lock is not held.":                 "who、force：没有人持有锁。",
	"Wrong arguments, a wrong URL or name, or something that the store cannot do.":    "参数、URL 或名字有误，或者存储不支持。",
	"The store does not answer. lead waits for it.":                                   "存储没有应答。lead 会等它。",
	"The store answers with an error, or the output cannot be written.":               "存储返回错误，或无法写输出。",
	"run: another owner holds the lock, and -try or -wait ended the attempt.":         "run：锁由别的所有者持有，-try 或 -wait 结束了尝试。",
	"run: the lock was lost while the command ran, or its release was not confirmed.": "run：命令运行期间失锁，或解锁未得到确认。",
	"The command cannot be executed.":                                                 "命令无法执行。",
	"The command does not exist.":                                                     "命令不存在。",
	"Signal N ended the command, or the wait for the lock.":                           "信号 N 结束了命令，或结束了对锁的等待。",
	"run and lead: the exit code of the command.":                                     "run 和 lead：命令的退出码。",
	exitNote: `命令自己的 64、69、74、75 或 79 无法区分。要避免这种情况：sh -c './backup.sh || exit 1'`,

	"USAGE:": "用法：", "COMMANDS:": "命令：", "EXAMPLES:": "示例：", "TIMES:": "时间：", "STORES:": "存储：",
	"EXIT CODES:": "退出码：", "MORE:": "更多：", "the manual": "手册",
	"withlock COMMAND -h shows the flags of a command.": "withlock COMMAND -h 显示一条命令的选项。",
	".SH NAME": ".SH 名称", ".SH SYNOPSIS": ".SH 用法", ".SH DESCRIPTION": ".SH 说明", ".SH STORES": ".SH 存储", ".SH EXAMPLES": ".SH 示例",
	".SH EXIT STATUS": ".SH 退出码", ".SH ENVIRONMENT": ".SH 环境变量", ".SH SEE ALSO": ".SH 另见",
	"This command is to %s.": "用途：%s。", " (default %s)": "（默认：%s）",
	"The URL of the store, if -store is not given.":                                            "没有给出 -store 时，存储的 URL。",
	"The command of run and lead does not get it, unless -keep-store is given.":                "除非给出 -keep-store，run 和 lead 的命令得不到它。",
	"The command of run and lead gets them: the name of the lock, and its fencing token.":      "run 和 lead 的命令会得到它们：锁的名字和隔离令牌。",
	"run and lead refuse the name that LOCK_NAME has already: they would wait for themselves.": "run 和 lead 拒绝 LOCK_NAME 已有的名字：否则会等待自己。",

	"run commands under a lock that several machines share": "持有多台机器共用的锁来运行命令",
	"`URL` of the store of the locks":                       "锁所在存储的 `URL`",
	"none":                                                  "无",
	"`NAME` of the lock":                                    "锁的名字 `NAME`",
	"let `N` commands of the name run at a time: a semaphore": "允许这个名字的命令同时运行 `N` 条：信号量",
	"a lock": "一把锁",
	"leave the variable WITHLOCK_STORE to the command":   "让命令得到环境变量 WITHLOCK_STORE",
	"`TIME` that the lock outlasts a crash or an outage": "崩溃或断线之后锁还保留的时间 `TIME`",
	"that of the store":                                              "由存储决定",
	"`TEXT` that others see for this holder":                         "别人看到的持有者标签 `TEXT`",
	"host and process id":                                            "主机名和进程号",
	"`WHAT` a loss does to the command: term, kill or none":          "失锁时怎样处理命令 `WHAT`：term、kill 或 none",
	"`TIME` between SIGTERM and SIGKILL, at most a third of the ttl": "SIGTERM 与 SIGKILL 之间的时间 `TIME`，最多是 ttl 的三分之一",
	"print JSON":                           "输出 JSON",
	"run a command while the lock is held": "持锁期间运行一条命令",
	"The command gets the variables LOCK_NAME and, if the lock has a fencing token, LOCK_TOKEN. The exit code is that " +
		"of the command. A loss ends the command and all that it has started.": "命令会得到环境变量 LOCK_NAME；" +
		"锁有隔离令牌时还有 LOCK_TOKEN。退出码与命令的相同。失锁会结束命令，以及由它启动的一切。",
	"`TIME` to wait, from the start of withlock; 0 is -try": "等待的时间 `TIME`，从 withlock 启动算起；0 就是 -try",
	"no limit":                       "不限",
	"do not wait for another holder": "不等待别的持有者",
	"keep a command running on one of several machines": "让一条命令始终在多台机器中的一台上运行",
	"Each machine campaigns for the lock, and the leader runs the command. After a loss it campaigns again. If the " +
		"command fails, another machine can lead during the pause. If the command succeeds, lead ends. It waits for a " +
		"store that does not answer.": "每台机器都参加竞选，由领导者运行命令。失锁之后重新竞选。如果命令失败，暂停期间可由" +
		"另一台机器领导。如果命令成功，lead 结束。存储没有应答时，lead 会等它。",
	"`TIME` to stay out after the command failed":                    "命令失败之后退出竞选的时间 `TIME`",
	"show the holders and the waiters of a lock":                     "显示一把锁的持有者和等待者",
	"list the locks of the store":                                    "列出存储里的锁",
	"In a pattern, * stands for any text without a slash.":           "模式里的 * 代表不含斜杠的任意文字。",
	"free a lock without its holder's consent":                       "不经持有者同意就释放一把锁",
	"The holder's work goes on until the holder learns of the loss.": "持有者在得知失锁之前会继续工作。",
	"really free it": "确实要释放",
	"show the locks of the store until interrupted":                              "持续显示存储里的锁，直到被中断",
	"In a terminal, the table is redrawn. Elsewhere each change prints a table.": "在终端里会重画表格；在别处，每次变化都输出一张表。",
	"`TIME` between two looks at the store":                                      "两次查看存储的间隔 `TIME`",
	"print the completion of a shell: bash, zsh or fish":                         "输出一种 shell 的补全脚本：bash、zsh 或 fish",
	"print candidates for the last of the words":                                 "输出最后一个词的候选",
	"print the version of withlock":                                              "输出 withlock 的版本",
	"show help":                                                                  "显示帮助", "other": "其他",
	"print the manual page":                       "输出手册",
	"SIGTERM, and SIGKILL after the grace period": "先 SIGTERM，宽限期过后 SIGKILL",
	"the command goes on":                         "命令继续运行",
	"the script for %s":                           "%s 的脚本",
	"the command follows":                         "后面是命令",
}
