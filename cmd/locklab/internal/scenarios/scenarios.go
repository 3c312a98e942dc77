// Package scenarios has the lessons of the lab on the locks of one process, one in each file.
//
// To add one, add a file that registers a lab.Scenario; the file's name is the scenario's, with
// underscores for hyphens. The reader is shown the lines between "//lab:show" and "//lab:end" as
// the code of the scenario.
//
// Every text stands beside its Chinese translation, as lab.T("Hello", "你好"). A test compares the
// two, and testdata/translated.txt records which belong together. After a change of either, read
// both again, and write the record: LOCKLAB_TRANSLATED=1 go test -run Translated . The chapters
// follow with: go run ./cmd/locklab docs docs
package scenarios

import (
	"embed"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed *.go fourlines/*.go
var sources embed.FS

// Course is all of them.
var Course = &lab.Course{
	Name:    "locklab",
	Command: "go run ./cmd/locklab",
	Title:   lab.T("The lock lab", "锁实验室"),
	Lead: lab.T("What locks do, watched on real ones. Everything on this page happened on the machine below, a "+
		"moment before "+
		"the page was written: the pictures are recordings, and the figures are measurements.",
		"在真实的锁上观察锁的行为。本页的一切都刚刚发生在下面这台机器上：图是录制的，数字是测得的。"),
	Lane:  lab.T("A lane is a goroutine", "每条泳道是一个 goroutine"),
	Page:  "locklab.html",
	Index: "README.md",
	Intro: lab.T(`Each chapter is a scenario of the lab: it runs on the real locks of this module, checks what it
teaches, and fails if what it sees contradicts the text. Locks between processes have
[a lab of their own](distributed.md). The figures are those of your machine:`,
		`每一章都是实验室的一个场景：它在本模块真实的锁上运行，检验所教的内容，一旦所见与文字不符就失败。
进程之间的锁另有[一个实验室](distributed.md)。数字都来自你自己的机器：`),
	Folder:  "cmd/locklab/internal/scenarios",
	Sources: sources,
}

func register(s lab.Scenario) bool { return Course.Register(s) }
