package cli

import (
	"path/filepath"
	"testing"

	"github.com/jucgo/locks/cmd/locklab/internal/lab/labtest"
)

func TestEveryTextOfTheCommandIsTranslated(t *testing.T) {
	labtest.Translated(t, filepath.Join("testdata", "translated.txt"), ".", filepath.Join("..", "lab"),
		filepath.Join("..", "report"))
}
