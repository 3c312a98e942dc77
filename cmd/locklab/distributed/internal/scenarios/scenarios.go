// Package scenarios has the lessons of the lab on locks between processes, one in each file.
//
// Add a scenario here like a scenario of one process, see package scenarios of locklab.
package scenarios

import (
	"embed"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed *.go
var sources embed.FS

// Course is all of them.
var Course = &lab.Course{
	Name:    "distributed",
	Command: "go run ./cmd/locklab/distributed",
	Title:   lab.T("The lock lab: between processes", "锁实验室：进程之间"),
	Lead: lab.T("What distributed locks do, the wrong ones and the right ones. The stores are inside this "+
		"program: miniredis, a Redis server, "+
		"or several of them, whose clock is the real one, and SQLite, in a temporary file. Every process "+
		"of the pictures is a client with "+
		"connections of its own. What is on this page happened a moment before it was written.",
		"分布式锁的行为，包括错误的和正确的。存储都在本程序内部：miniredis，即一台或多台 Redis 服务器，"+
			"用的是真实的时钟；还有临时文件中的 SQLite。图中的每个进程都是一个有自己连接的客户端。本页的"+
			"一切都发生在写出它的前一刻。"),
	Lane:  lab.T("A lane is a process", "每条泳道是一个进程"),
	Page:  "locklab-distributed.html",
	Index: "distributed.md",
	Intro: lab.T(`Each chapter is a scenario. It runs the locks of this module, and the wrong ones that they
replace, on Redis servers or an SQLite database inside the program. Where there is no such store it runs on a
model, and says so. It checks what it teaches. Locks in one process have [a lab of their own](README.md). The
figures are those of your machine:`,
		`每一章都是一个场景。它在程序内部的 Redis 服务器或 SQLite 数据库上，运行本模块的锁以及它们所取代
的错误写法；没有这样的存储时，就在模型上运行，并会注明。它检验所教的内容。同一进程内的锁另有[一
个实验室](README.md)。数字都来自你自己的机器：`),
	Folder:  "cmd/locklab/distributed/internal/scenarios",
	Sources: sources,
}

func register(s lab.Scenario) bool { return Course.Register(s) }
