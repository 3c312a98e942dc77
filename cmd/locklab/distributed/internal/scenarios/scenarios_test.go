package scenarios_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/cmd/locklab/distributed/internal/scenarios"
	"github.com/jucgo/locks/cmd/locklab/internal/lab/labtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryScenarioShowsWhatItTeaches(t *testing.T) { labtest.Shows(t, scenarios.Course) }

func TestEveryTextIsTranslated(t *testing.T) {
	labtest.Translated(t, filepath.Join("testdata", "translated.txt"), ".")
}

func TestEveryScenarioIsToldInFull(t *testing.T) {
	labtest.Told(t, scenarios.Course, "server", "database")
}

func TestTextsHaveNoFiguresOfTheirOwn(t *testing.T) { labtest.HasNoFigures(t, scenarios.Course) }
