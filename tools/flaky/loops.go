package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

const loopVariable = "LOCKS_FLAKY_LOOP"

// loop computes until standard input ends, which the system closes with the parent, however that
// ends.
func loop() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	//lint:ignore SA5002 the loop keeps a processor busy
	for {
	}
}

// startLoops starts n processes of this program that compute for ever, on one processor each. The
// function that it returns ends them.
func startLoops(n int) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	for range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), loopVariable+"=1", "GOMAXPROCS=1")
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("start a busy loop: %w", err)
		}
		stops = append(stops, func() {
			stdin.Close()
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	return stop, nil
}
