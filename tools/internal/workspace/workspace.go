// Package workspace knows the modules of this repository.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Root is the path of the root module. The paths of all other modules begin with it.
const Root = "github.com/jucgo/locks"

// private lists the modules that serve this repository alone. They are never tagged.
var private = []string{
	"cmd/locklab/browsertest",
	"distributed/bench",
	"distributed/interop/curator",
	"distributed/interop/redisson",
	"examples/stores",
	"tools",
}

// A Module is one module of the repository.
type Module struct {
	// Dir is the folder of the module below the root of the repository, with slashes, "." for the
	// root module.
	Dir string
	// Folder is the same folder for the functions of package os.
	Folder string
	// Path is the path by which users import the module.
	Path string
	// Public is whether the module is released.
	Public bool
	// File is the parsed go.mod.
	File *modfile.File
}

// Tag returns the tag of git that releases version of the module.
func (m *Module) Tag(version string) string { return path.Join(m.Dir, version) }

// Name returns a name of the module for files: "locks", "distributed-redislock".
func (m *Module) Name() string {
	if m.Dir == "." {
		return "locks"
	}
	return strings.ReplaceAll(m.Dir, "/", "-")
}

// Own reports whether path is the path of a module of this repository.
func Own(path string) bool { return path == Root || strings.HasPrefix(path, Root+"/") }

// A Workspace is the repository with all modules of tools/modules.work, the root module first.
type Workspace struct {
	Folder  string
	Modules []*Module
}

// List is the file that lists all modules. `make setup` makes a go.work of it, which git ignores.
const List = "tools/modules.work"

// Open finds the list of modules at or above folder, and reads it and the go.mod files that it
// names.
func Open(folder string) (*Workspace, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	var text []byte
	for {
		text, err = os.ReadFile(filepath.Join(folder, filepath.FromSlash(List)))
		if err == nil {
			break
		}
		above := filepath.Dir(folder)
		if !errors.Is(err, fs.ErrNotExist) || above == folder {
			return nil, fmt.Errorf("find %s: %w", List, err)
		}
		folder = above
	}
	work, err := modfile.ParseWork(List, text, nil)
	if err != nil {
		return nil, err
	}
	w := &Workspace{Folder: folder}
	for _, use := range work.Use {
		m := &Module{Dir: path.Clean(use.Path), Folder: filepath.Join(folder, filepath.FromSlash(use.Path))}
		m.Public = !slices.Contains(private, m.Dir)
		name := filepath.Join(m.Folder, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m.File, err = modfile.Parse(name, text, nil); err != nil {
			return nil, err
		}
		m.Path = m.File.Module.Mod.Path
		if want := path.Join(Root, m.Dir); m.Path != want {
			return nil, fmt.Errorf("%s: the module is %s, its folder wants %s", name, m.Path, want)
		}
		w.Modules = append(w.Modules, m)
	}
	slices.SortFunc(w.Modules, func(a, b *Module) int { return strings.Compare(a.Path, b.Path) })
	return w, nil
}

// Public returns the modules that are released.
func (w *Workspace) Public() []*Module {
	var public []*Module
	for _, m := range w.Modules {
		if m.Public {
			public = append(public, m)
		}
	}
	return public
}
