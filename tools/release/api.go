package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// apiFile returns the path of the list of the exported API of m.
func apiFile(w *workspace.Workspace, m *workspace.Module) string {
	return filepath.Join(w.Folder, "api", m.Name()+".txt")
}

// writeAPI rewrites the lists of all public modules that have packages to import.
func writeAPI(w *workspace.Workspace) error {
	for _, m := range w.Public() {
		list, err := exported(m)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		if err := os.WriteFile(apiFile(w, m), list, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkAPI compares the lists with the exported API.
func checkAPI(w *workspace.Workspace) error {
	var errs []error
	for _, m := range w.Public() {
		now, err := exported(m)
		if err != nil {
			return err
		}
		recorded, err := os.ReadFile(apiFile(w, m))
		if err != nil && len(now) > 0 {
			return err
		}
		if changes := difference(string(recorded), string(now)); changes != "" {
			errs = append(errs, fmt.Errorf("the exported API of %s differs from api/%s.txt:\n%s"+
				"if that is intended, run: go run ./tools/release api", m.Path, m.Name(), changes))
		}
	}
	return errors.Join(errs...)
}

// difference returns the lines that only one of two sorted lists has.
func difference(recorded, now string) string {
	a, b := strings.Split(recorded, "\n"), strings.Split(now, "\n")
	var out strings.Builder
	for _, line := range a {
		if _, found := slices.BinarySearch(b[:len(b)-1], line); !found && line != "" {
			fmt.Fprintf(&out, "- %s\n", line)
		}
	}
	for _, line := range b {
		if _, found := slices.BinarySearch(a[:len(a)-1], line); !found && line != "" {
			fmt.Fprintf(&out, "+ %s\n", line)
		}
	}
	return out.String()
}

// exported returns the exported API of m on linux/amd64, a sorted list with a line for each
// package, function, method, field, constant and variable.
func exported(m *workspace.Module) ([]byte, error) {
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedImports |
			packages.NeedExportFile,
		Dir: m.Folder,
		Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "PWD="+m.Folder),
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", m.Path, err)
	}
	var lines []string
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("type-check %s: %w", p.PkgPath, p.Errors[0])
		}
		if p.Name == "main" || len(p.GoFiles) == 0 || slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			continue
		}
		lines = append(lines, describe(p.Types)...)
	}
	slices.Sort(lines)
	var out bytes.Buffer
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(&out, line)
	}
	return out.Bytes(), nil
}

// describe returns a line for each exported part of a package.
func describe(p *types.Package) []string {
	var lines []string
	short := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	add := func(format string, args ...any) {
		line := strings.TrimPrefix(p.Path(), workspace.Root+"/") + ": " + fmt.Sprintf(format, args...)
		lines = append(lines, line)
	}
	add("package %s", p.Name())
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			add("%s = %s", types.ObjectString(o, short), o.Val())
		case *types.TypeName:
			describeType(o, short, add)
		default:
			add("%s", types.ObjectString(o, short))
		}
	}
	return lines
}

func describeType(o *types.TypeName, short types.Qualifier, add func(string, ...any)) {
	if o.IsAlias() {
		add("%s", types.ObjectString(o, short))
		return
	}
	named := o.Type().(*types.Named)
	header := "type " + types.TypeString(named, short)
	switch under := named.Underlying().(type) {
	case *types.Struct:
		add("%s struct", header)
		for field := range under.Fields() {
			if field.Exported() {
				add("%s struct, %s %s", header, field.Name(), types.TypeString(field.Type(), short))
			}
		}
	case *types.Interface:
		add("%s interface", header)
		for method := range under.Methods() {
			if !method.Exported() {
				add("%s interface, unexported methods", header)
				continue
			}
			add("%s interface, %s%s", header, method.Name(), signature(method, short))
		}
		return
	default:
		add("%s %s", header, types.TypeString(under, short))
	}
	direct := types.NewMethodSet(named)
	set := types.NewMethodSet(types.NewPointer(named))
	for selection := range set.Methods() {
		method := selection.Obj().(*types.Func)
		if !method.Exported() {
			continue
		}
		receiver := "*" + types.TypeString(named, short)
		if direct.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = types.TypeString(named, short)
		}
		add("method (%s) %s%s", receiver, method.Name(), signature(method, short))
	}
}

func signature(method *types.Func, short types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(method.Signature(), short), "func")
}
