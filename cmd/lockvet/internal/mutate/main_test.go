package main

import (
	"testing"

	"golang.org/x/tools/go/packages"
)

func TestEachKindOfMistakeIsPutInAndFound(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, "./testdata/right")
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatal(err)
	}
	before, err := analyze(loaded[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(before) > 0 {
		t.Fatalf("there are reports without a mistake: %v", before)
	}
	found := map[string]bool{}
	for _, m := range mutations(loaded[0], 0) {
		ok, err := m.found(before)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			t.Errorf("%s: %s is not found", m.place, m.kind)
		}
		found[m.kind] = true
	}
	for _, kind := range kinds {
		if !found[kind] {
			t.Errorf("no %s was put in", kind)
		}
	}
}
