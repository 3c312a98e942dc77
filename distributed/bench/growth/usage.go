package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// usage is the consumption of this process and the server at one moment.
type usage struct {
	memory     int64 // of this process: the heap after a collection, and the stacks
	goroutines int
	server     int64 // bytes, or 0 if the system does not tell
	messages   int64
	bytes      int64
}

func takeUsage(c *client, port string) usage {
	u := usage{server: serverMemory(port)}
	runtime.GC()
	runtime.GC() // what a finalizer has let go of
	u.goroutines = runtime.NumGoroutine()
	for range 20 { // without the goroutines that have done their work, and without the goroutine that runs finalizers
		time.Sleep(time.Millisecond)
		u.goroutines = min(u.goroutines, runtime.NumGoroutine())
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.memory = int64(m.HeapAlloc + m.StackInuse)
	u.messages, u.bytes = c.calls()
	return u
}

// since returns what was added since an earlier moment.
func (u usage) since(before usage) usage {
	return usage{
		memory: u.memory - before.memory, goroutines: u.goroutines - before.goroutines,
		server: u.server - before.server, messages: u.messages - before.messages, bytes: u.bytes - before.bytes,
	}
}

// serverMemory returns the memory of the processes that listen on a port, and of their children:
// the sum of their shares (Pss). It is 0 if the system does not tell.
func serverMemory(port string) (sum int64) {
	for pid := range serverProcesses(port) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				sum += kilobytes << 10
			}
		}
	}
	return sum
}

// serverProcesses returns the processes that listen on a port, and their children.
func serverProcesses(port string) map[int]bool {
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	sockets := make(map[string]bool)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file)
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			const listening = "0A"
			if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) && fields[3] == listening {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	pids := make(map[int]bool)
	for _, fd := range glob("/proc/[0-9]*/fd/*") {
		if to, err := os.Readlink(fd); err == nil && sockets[to] {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			pids[pid] = true
		}
	}
	delete(pids, os.Getpid())
	parents := make(map[int]int)
	for _, file := range glob("/proc/[0-9]*/stat") {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may have spaces
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if fields := strings.Fields(rest); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if pids[parent] && !pids[pid] {
				pids[pid], grown = true, true
			}
		}
	}
	return pids
}

// glob returns the names that match, of which some may have gone.
func glob(pattern string) []string {
	names, _ := filepath.Glob(pattern)
	return names
}
