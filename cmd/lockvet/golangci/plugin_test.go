package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/jucgo/locks/cmd/lockvet/checks"
	_ "github.com/jucgo/locks/cmd/lockvet/golangci"
)

func build(t *testing.T, settings any) (int, error) {
	t.Helper()
	make, err := register.GetPlugin("lockvet")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := make(settings)
	if err != nil {
		return 0, err
	}
	if mode := plugin.GetLoadMode(); mode != register.LoadModeTypesInfo {
		t.Errorf("the checks need types, and the mode is %s", mode)
	}
	analyzers, err := plugin.BuildAnalyzers()
	return len(analyzers), err
}

func TestThePluginHasAllChecks(t *testing.T) {
	if n, err := build(t, nil); err != nil || n != len(checks.Analyzers()) {
		t.Errorf("%d checks, %v", n, err)
	}
}

func TestSettingsDisableChecks(t *testing.T) {
	n, err := build(t, map[string]any{"disable": []string{"lockorder", "waitloop"}})
	if err != nil || n != len(checks.Analyzers())-2 {
		t.Errorf("%d checks, %v", n, err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, settings := range []any{
		map[string]any{"disable": []string{"lockorde"}},
		map[string]any{"enable": []string{"lockorder"}},
		map[string]any{"locktypes": []string{"Mutex"}},
	} {
		if _, err := build(t, settings); err == nil {
			t.Errorf("%v is accepted", settings)
		}
	}
}
