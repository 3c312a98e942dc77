// Package golangci makes the checks a plugin of golangci-lint. Import it in a custom build of
// golangci-lint: README.md has the configuration. The name of the linter is lockvet. The setting
// "disable" lists names of checks that do not run, and "locktypes" further types of locks.
package golangci

import (
	"fmt"
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

func init() { register.Plugin("lockvet", newPlugin) }

type settings struct {
	Disable   []string `json:"disable"`
	LockTypes []string `json:"locktypes"`
}

type plugin struct{ analyzers []*analysis.Analyzer }

func newPlugin(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, fmt.Errorf("lockvet: %w", err)
	}
	all := checks.Analyzers()
	for _, name := range s.Disable {
		if !slices.ContainsFunc(all, func(a *analysis.Analyzer) bool { return a.Name == name }) {
			return nil, fmt.Errorf("lockvet: disable %q: no check has this name", name)
		}
	}
	if err := checks.SetLockTypes(s.LockTypes...); err != nil {
		return nil, fmt.Errorf("lockvet: locktypes: %w", err)
	}
	return plugin{slices.DeleteFunc(all, func(a *analysis.Analyzer) bool {
		return slices.Contains(s.Disable, a.Name)
	})}, nil
}

func (p plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return p.analyzers, nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
