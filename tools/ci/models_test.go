package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A modelled repository has models whose scripts only say that they search.
type modelled struct{ *ci }

func newModelled(t *testing.T) modelled {
	t.Helper()
	c := modelled{&ci{folder: t.TempDir()}}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	programs := t.TempDir()
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"spin", "gcc"} {
		must(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho version 1\n"), 0o755))
	}
	for _, folder := range modelFolders {
		c.write(t, folder+"/run.sh", "echo searched "+folder+"\n")
	}
	return c
}

func (c modelled) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(c.folder, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// searches checks the models, and returns how many folders were searched and how many tables there
// are.
func (c modelled) searches(t *testing.T) (searched, tables int) {
	t.Helper()
	j := &job{ci: c.ci}
	must(t, models(t.Context(), j))
	tables = strings.Count(string(j.out.Bytes()), "searched ")
	return tables - strings.Count(string(j.out.Bytes()), "checked before"), tables
}

func (c modelled) want(t *testing.T, want int) {
	t.Helper()
	if searched, tables := c.searches(t); searched != want || tables != len(modelFolders) {
		t.Errorf("%d folders were searched, want %d, and there are %d tables", searched, want, tables)
	}
}

func TestModelsThatWereCheckedAreNotSearchedAgain(t *testing.T) {
	c := newModelled(t)
	c.want(t, 3)
	c.want(t, 0)
}

func TestAChangedModelIsSearchedAgain(t *testing.T) {
	c := newModelled(t)
	c.want(t, 3)
	c.write(t, modelFolders[0]+"/new.pml", "init { skip }\n")
	c.want(t, 1)
}

func TestTheSharedScriptOfModelsBelongsToBothFolders(t *testing.T) {
	c := newModelled(t)
	c.want(t, 3)
	c.write(t, "distributed/lease/model/check.sh", "true\n")
	c.want(t, 3) // the first folder has a script of its own, and costs one search more
}

func TestTheFullRunSearchesEachTime(t *testing.T) {
	c := newModelled(t)
	c.want(t, 3)
	c.full = true
	c.want(t, 3)
}

func TestAFailingModelIsNotKept(t *testing.T) {
	c := newModelled(t)
	c.write(t, modelFolders[2]+"/run.sh", "echo searched; exit 1\n")
	for range 2 {
		if err := models(t.Context(), &job{ci: c.ci}); err == nil {
			t.Error("a failing model is no error")
		}
	}
}
