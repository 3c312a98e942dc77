package scenarios_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/cmd/locklab/internal/lab/labtest"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryScenarioShowsWhatItTeaches(t *testing.T) { labtest.Shows(t, scenarios.Course) }

func TestEveryScenarioIsToldInFull(t *testing.T) { labtest.Told(t, scenarios.Course) }

func TestEveryTextIsTranslated(t *testing.T) {
	labtest.Translated(t, filepath.Join("testdata", "translated.txt"), ".")
}

func TestTextsHaveNoFiguresOfTheirOwn(t *testing.T) { labtest.HasNoFigures(t, scenarios.Course) }
