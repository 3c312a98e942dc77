package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

// A process with this variable runs other checks in place of a survey.
const checksVariable = "SURVEY_CHECKS"

// others are the checks to compare with, by name.
var others = map[string][]*analysis.Analyzer{
	"the checks of go vet": vet.Suite,
	"no checks":            {nothing},
}

// nothing reports nothing. Its facts let the driver load what checks with facts need.
var nothing = &analysis.Analyzer{
	Name: "nothing", Doc: "report nothing",
	Run:       func(*analysis.Pass) (any, error) { return nil, nil },
	FactTypes: []analysis.Fact{(*noFact)(nil)},
}

type noFact struct{}

func (*noFact) AFact() {}

// runAsChecks runs other checks, if measureOthers has started this process.
func runAsChecks() {
	if checks := others[os.Getenv(checksVariable)]; checks != nil {
		multichecker.Main(checks...)
	}
}

// measureOthers returns the processor time of the other checks over one module.
func measureOthers(command func(tool string, variables ...string) *exec.Cmd) (map[string]time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	used := map[string]time.Duration{}
	for checks := range others {
		cmd := command(self, checksVariable+"="+checks)
		err := cmd.Run()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if err != nil && (!ok || exit.ExitCode() != 3) { // 3 after a report
			return nil, fmt.Errorf("%s: %w", checks, err)
		}
		used[checks] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return used, nil
}
