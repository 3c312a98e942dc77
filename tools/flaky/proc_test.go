package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// children returns the processes that a process has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	var all []int
	lists, err := filepath.Glob(proc(pid, "task/*/children"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, child)
		}
	}
	slices.Sort(all)
	return all
}

// wantGone waits until the processes have ended.
func wantGone(t *testing.T, pids []int) {
	t.Helper()
	alive := func(pid int) bool {
		stat, err := os.ReadFile(proc(pid, "stat"))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	for limit := time.Now().Add(time.Minute); slices.ContainsFunc(pids, alive); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			for _, pid := range pids {
				text, _ := os.ReadFile(proc(pid, "cmdline"))
				fmt.Printf("%d %t %q\n", pid, alive(pid), text)
			}
			t.Fatal("these processes did not end")
		}
	}
}
