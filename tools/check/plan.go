package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A plan has the packages and files that must be checked. All folders are below the root of the
// repository, with slashes.
type plan struct {
	// packages has the folder of each package, with the changed files that it is tested for.
	packages map[string][]string
	// models has the folder of each model, with the words that choose lines of its run.sh.
	models map[string][]string
}

func newPlan() *plan { return &plan{packages: map[string][]string{}, models: map[string][]string{}} }

func (p *plan) add(folder, file string) {
	if file == "" || !slices.Contains(p.packages[folder], file) {
		p.packages[folder] = append(p.packages[folder], file)
	}
}

func (p *plan) print(out io.Writer) {
	for _, folder := range slices.Sorted(maps.Keys(p.packages)) {
		files := p.packages[folder]
		fmt.Fprintf(out, "%s for %s", folder, files[0])
		if len(files) > 1 {
			fmt.Fprintf(out, " and %d more", len(files)-1)
		}
		fmt.Fprintln(out)
	}
	for _, folder := range slices.Sorted(maps.Keys(p.models)) {
		fmt.Fprintln(out, strings.TrimSpace(folder+" "+strings.Join(p.models[folder], " ")))
	}
}

// A goPackage is the answer of `go list` about a package. With -test, `go list` describes the tests
// too.
type goPackage struct {
	Dir, ImportPath, ForTest                    string
	Standard                                    bool
	Deps                                        []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
	folder                                      string // Dir below the root of the repository
}

// plan finds what changed files can break: the packages that contain, embed or read them, the
// packages of the same module that import these, and the models.
func (c *checker) plan(changed []string) (*plan, error) {
	p := newPlan()
	gone := map[string][]string{} // folders that are no packages any more, with their files
	readers, err := c.readers()
	if err != nil {
		return nil, err
	}
	for _, file := range changed {
		switch name := path.Base(file); {
		case path.Ext(file) == ".pml" && c.has(path.Join(path.Dir(file), "run.sh")):
			folder := path.Dir(file)
			if models, all := p.models[folder]; !all || models != nil {
				words, err := c.including(file)
				if err != nil {
					return nil, err
				}
				p.models[folder] = merged(models, words)
			}
		case path.Ext(file) == ".sh" && path.Base(path.Dir(file)) == "model":
			folders, err := c.sourcing(file)
			if err != nil {
				return nil, err
			}
			for _, folder := range folders {
				p.models[folder] = nil // all lines
			}
		case strings.HasSuffix(name, ".go") && !inTestdata(file):
			if folder := path.Dir(file); c.isPackage(folder) {
				p.add(folder, file)
			} else {
				gone[folder] = append(gone[folder], file)
			}
		case (name == "go.mod" || name == "go.sum") && !inTestdata(file):
			if c.has(path.Join(path.Dir(file), "go.mod")) {
				all, err := c.list(path.Dir(file))
				if err != nil {
					return nil, err
				}
				for _, pkg := range all {
					p.add(pkg.folder, file)
				}
			}
			c.addTools(p, file, "release")
		default:
			found := false
			for _, r := range readers {
				if r.reads(file) {
					p.add(r.folder, file)
					found = true
				}
			}
			owner, err := c.owner(file)
			if err != nil {
				return nil, err
			}
			if owner != "" && (!found || inTestdata(file)) && path.Ext(file) != ".md" {
				p.add(owner, file)
			}
		}
		c.addTools(p, file, toolsOf(file)...)
	}
	return p, c.addImporters(p, gone)
}

// toolsOf returns the packages of the module tools that read a file.
func toolsOf(file string) []string {
	top, _, _ := strings.Cut(file, "/")
	switch {
	case top == ".ci" || top == ".github" || top == "Makefile":
		return []string{"docs", "ci"}
	case top == "api":
		return []string{"docs", "release"}
	case top == "examples" || path.Ext(file) != ".go":
		return []string{"docs"} // pages, what they link to, and programs that they show
	}
	return nil
}

func (c *checker) addTools(p *plan, file string, names ...string) {
	for _, name := range names {
		if folder := "tools/" + name; c.isPackage(folder) {
			p.add(folder, file)
		}
	}
}

func inTestdata(file string) bool { return slices.Contains(strings.Split(file, "/"), "testdata") }

// owner returns the package that a file without a reader belongs to, or "". That is the package
// that embeds the file, or else the first package in a folder above, but not the root package.
func (c *checker) owner(file string) (string, error) {
	above, _, data := strings.Cut("/"+file, "/testdata/")
	folder := path.Dir(file)
	if data {
		folder = path.Clean("./" + above)
	}
	for ; !c.isPackage(folder); folder = path.Dir(folder) {
		if folder == "." {
			return "", nil
		}
	}
	all, err := c.list(c.module(folder))
	if err != nil {
		return "", err
	}
	for _, pkg := range all {
		for _, embedded := range slices.Concat(pkg.EmbedFiles, pkg.TestEmbedFiles, pkg.XTestEmbedFiles) {
			if path.Join(pkg.folder, embedded) == file {
				return pkg.folder, nil
			}
		}
	}
	if folder == "." && !data {
		return "", nil
	}
	return folder, nil
}

// isPackage reports whether a folder has Go files.
func (c *checker) isPackage(folder string) bool {
	files, _ := filepath.Glob(filepath.Join(c.in(folder), "*.go"))
	return len(files) > 0
}

// module returns the folder of the module that a folder belongs to.
func (c *checker) module(folder string) string {
	for ; folder != "." && !c.has(path.Join(folder, "go.mod")); folder = path.Dir(folder) {
	}
	return folder
}

// list returns the packages of a module, with those that `go list` makes of their tests.
func (c *checker) list(module string) ([]goPackage, error) {
	if all, known := c.listed[module]; known {
		return all, nil
	}
	out, err := c.command(module, "go", "list", "-e", "-test",
		"-json=Dir,ImportPath,ForTest,Standard,Deps,EmbedFiles,TestEmbedFiles,XTestEmbedFiles", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", module, err)
	}
	root, err := filepath.EvalSymlinks(c.w.Folder)
	if err != nil {
		return nil, err
	}
	var all []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			c.listed[module] = all
			return all, nil
		} else if err != nil {
			return nil, err
		}
		folder, err := filepath.Rel(root, pkg.Dir)
		if err != nil {
			return nil, err
		}
		pkg.folder = filepath.ToSlash(folder)
		all = append(all, pkg)
	}
}

// addImporters adds the packages that import a package of p, or a package that is gone, within the
// same module, in their tests too.
func (c *checker) addImporters(p *plan, gone map[string][]string) error {
	changed := maps.Clone(p.packages)
	maps.Copy(changed, gone)
	modules := map[string]bool{}
	for folder := range changed {
		modules[c.module(folder)] = true
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		all, err := c.list(module)
		if err != nil {
			return err
		}
		folders := map[string]string{}
		for folder := range gone {
			if c.module(folder) == module {
				folders[c.importPath(module, folder)] = folder
			}
		}
		for _, pkg := range all {
			folders[plainPath(pkg.ImportPath)] = pkg.folder
		}
		for _, pkg := range all {
			for _, dep := range pkg.Deps {
				folder, own := folders[plainPath(dep)]
				if !own {
					continue
				}
				for _, file := range changed[folder] {
					p.add(pkg.folder, file)
				}
			}
		}
	}
	return nil
}

// importPath returns the path by which programs import a folder of a module.
func (c *checker) importPath(module, folder string) string {
	for _, m := range c.w.Modules {
		if m.Dir == module {
			return path.Join(m.Path, strings.TrimPrefix("./"+folder, "./"+module))
		}
	}
	return ""
}

// plainPath returns the import path without what `go list` adds to a package that is compiled for
// a test.
func plainPath(importPath string) string {
	importPath, _, _ = strings.Cut(importPath, " [")
	return strings.TrimSuffix(importPath, ".test")
}

// A reader is a package with the files that its tests name.
type reader struct {
	folder   string
	patterns []string // for path.Match, below the root of the repository
}

func (r reader) reads(file string) bool {
	return slices.ContainsFunc(r.patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, file)
		return ok
	})
}

// readers returns the packages whose tests have string literals that can be paths of files.
func (c *checker) readers() ([]reader, error) {
	byFolder := map[string][]string{}
	err := filepath.WalkDir(c.w.Folder, func(file string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); name == ".git" || name == "testdata" || name == "target" || name == "artifacts" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(c.w.Folder, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(name)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // go vet says it
		}
		for _, pattern := range paths(parsed) {
			full := path.Join(folder, pattern)
			if !strings.HasPrefix(full, "../") && full != "." && full != folder {
				byFolder[folder] = append(byFolder[folder], full)
			}
		}
		return nil
	})
	var all []reader
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		all = append(all, reader{folder, byFolder[folder]})
	}
	return all, err
}

var pathLike = regexp.MustCompile(`^[\w.*/-]+$`)

// paths returns the string literals of a file that can be a path: alone, and as arguments of a
// Join, where * stands for an argument that is not a literal.
func paths(file *ast.File) []string {
	var found []string
	joined := map[ast.Node]bool{}
	literal := func(n ast.Node) (string, bool) {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(lit.Value)
		return text, err == nil && pathLike.MatchString(text)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			if of, ok := call.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Join" {
				parts := make([]string, len(call.Args))
				known := false
				for i, arg := range call.Args {
					parts[i] = "*"
					if text, ok := literal(arg); ok {
						parts[i], known = text, true
						joined[arg] = true
					}
				}
				if known {
					found = append(found, path.Join(parts...))
				}
			}
		}
		// A word without a dot or slash is rarely a path.
		if text, ok := literal(n); ok && !joined[n] && strings.ContainsAny(text, "./") && !strings.HasPrefix(text, "/") {
			found = append(found, text)
		}
		return true
	})
	return found
}

var sourced = regexp.MustCompile(`(?m)^\. (\S+)$`)

// sourcing returns the folders of models whose run.sh is, or sources, a script.
func (c *checker) sourcing(script string) ([]string, error) {
	var folders []string
	err := filepath.WalkDir(c.w.Folder, func(file string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() != "run.sh" {
			return err
		}
		name, err := filepath.Rel(c.w.Folder, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		sources := name == script
		for _, match := range sourced.FindAllStringSubmatch(string(text), -1) {
			sources = sources || path.Join(path.Dir(name), match[1]) == script
		}
		if sources {
			folders = append(folders, path.Dir(name))
		}
		return nil
	})
	return folders, err
}

var included = regexp.MustCompile(`(?m)^#include "(\S+)"`)

// including returns the names of the models that are, or include, a file.
func (c *checker) including(file string) ([]string, error) {
	folder := path.Dir(file)
	files, err := filepath.Glob(filepath.Join(c.in(folder), "*.pml"))
	if err != nil {
		return nil, err
	}
	includes := map[string][]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, match := range included.FindAllStringSubmatch(string(text), -1) {
			includes[filepath.Base(name)] = append(includes[filepath.Base(name)], match[1])
		}
	}
	words := []string{path.Base(file)}
	for i := 0; i < len(words); i++ {
		for _, name := range slices.Sorted(maps.Keys(includes)) {
			if slices.Contains(includes[name], words[i]) && !slices.Contains(words, name) {
				words = append(words, name)
			}
		}
	}
	return words, nil
}

// merged returns the words of both lists once each.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
