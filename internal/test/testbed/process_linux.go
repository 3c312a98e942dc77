package testbed

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// dieWithParent has the process killed when the thread ends that has started it.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

var (
	starter sync.Once
	starts  = make(chan func())
)

// start starts cmd from a thread that lasts as long as this process: the signal above is sent
// at the end of the thread.
func start(cmd *exec.Cmd) error {
	starter.Do(func() {
		go func() {
			runtime.LockOSThread()
			for f := range starts {
				f()
			}
		}()
	})
	result := make(chan error)
	starts <- func() { result <- cmd.Start() }
	return <-result
}
