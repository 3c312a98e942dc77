package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// printLeftOut prints one line if the checks leave out something in a package, in one write.
func printLeftOut(w io.Writer, l checks.LeftOut, zh bool) {
	if !l.Any() {
		return
	}
	var reasons []string
	for _, r := range []struct {
		n      int
		en, zh string
	}{
		{l.Nameless, "without a fixed name such as s.mu", "没有 s.mu 这样固定的名字"},
		{l.Given, "of locks that other code gets", "的锁会交给其他代码"},
		{l.Unclear, "on paths that are not clear", "的路径不明确"},
		{l.Released, "of locks that another function releases", "的锁由另一个函数释放"},
		{l.Kept, "in functions that keep the lock, by their name or comment", "所在的函数按名字或注释会留着锁"},
		{l.Generated, "in generated files", "在生成的文件里"},
	} {
		switch {
		case r.n == 0:
		case zh:
			reasons = append(reasons, fmt.Sprintf("%d 处%s", r.n, r.zh))
		default:
			reasons = append(reasons, fmt.Sprintf("%d %s", r.n, r.en))
		}
	}
	if zh {
		fmt.Fprintf(w, "%s：共 %d 处加锁，未跟踪：%s\n", l.Package, l.Acquisitions, strings.Join(reasons, "；"))
		return
	}
	fmt.Fprintf(w, "%s: of %d acquisitions of locks, left out: %s\n", l.Package, l.Acquisitions, strings.Join(reasons, "; "))
}
