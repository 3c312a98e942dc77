package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// checkModules checks the go.mod files. All modules of this repository require one version of each
// other, and public modules require only public modules. Library modules replace the modules that
// they require. Public modules with commands replace nothing. An empty version stands for the
// version that the first requirement has.
func checkModules(w *workspace.Workspace, version string) error {
	public := map[string]bool{}
	for _, m := range w.Modules {
		public[m.Path] = m.Public
	}
	var errs []error
	wrong := func(m *workspace.Module, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s/go.mod: %s", m.Dir, fmt.Sprintf(format, args...)))
	}
	for _, m := range w.Modules {
		commands, err := commands(m)
		if err != nil {
			return err
		}
		replaced := map[string]bool{}
		for _, r := range m.File.Replace {
			replaced[r.Old.Path] = true
			if m.Public && len(commands) > 0 {
				wrong(m, "replaces %s, and go install refuses %s for that", r.Old.Path, commands[0])
			}
			if m.Public && !workspace.Own(r.Old.Path) {
				wrong(m, "replaces %s, which users of the module do not", r.Old.Path)
			}
		}
		for _, r := range m.File.Require {
			if !workspace.Own(r.Mod.Path) {
				continue
			}
			if version == "" {
				version = r.Mod.Version
			}
			if r.Mod.Version != version {
				wrong(m, "requires %s, others require %s", r.Mod, version)
			}
			if m.Public && !public[r.Mod.Path] {
				wrong(m, "requires %s, which is never released", r.Mod.Path)
			}
			if !replaced[r.Mod.Path] && (len(commands) == 0 || !m.Public) {
				wrong(m, "does not replace %s", r.Mod.Path)
			}
		}
	}
	return errors.Join(errs...)
}

// checkVersions checks that each module requires the versions that the workspace selects, so that
// the tests in the workspace test the versions that users of the module get. Without the workspace
// a module then differs only in the versions of modules that its packages do not import.
func checkVersions(w *workspace.Workspace, selected map[string]string) error {
	var errs []error
	for _, m := range w.Modules {
		for _, r := range m.File.Require {
			want, found := selected[r.Mod.Path]
			if r.Indirect || workspace.Own(r.Mod.Path) || found && want == r.Mod.Version {
				continue
			}
			errs = append(errs, fmt.Errorf("%s/go.mod: requires %s, the workspace is tested with %s; "+
				"run in its folder: GOWORK=off go get %s@%s", m.Dir, r.Mod, want, r.Mod.Path, want))
		}
	}
	return errors.Join(errs...)
}

// selected returns the versions of the modules that the workspace selects.
func selected(w *workspace.Workspace) (map[string]string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")
	cmd.Dir = w.Folder
	cmd.Env = append(os.Environ(), "PWD="+w.Folder)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules of the workspace: %w", err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	return versions, nil
}

// commands returns the import paths of the commands in m.
func commands(m *workspace.Module) ([]string, error) {
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName, Dir: m.Folder}, "./...")
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", m.Path, err)
	}
	var found []string
	for _, p := range all {
		if p.Name == "main" {
			found = append(found, p.PkgPath)
		}
	}
	return found, nil
}

// setVersions rewrites the requirements among the modules of this repository.
func setVersions(w *workspace.Workspace, version string) error {
	for _, m := range w.Modules {
		for _, r := range m.File.Require {
			if workspace.Own(r.Mod.Path) {
				if err := m.File.AddRequire(r.Mod.Path, version); err != nil {
					return err
				}
			}
		}
		text, err := m.File.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(m.Folder, "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func tidy(w *workspace.Workspace) error { return each(w, w.Modules, "mod", "tidy", "-diff") }

// build builds the libraries, and only resolves the imports of the commands: to compile their
// databases once more takes minutes.
func build(w *workspace.Workspace) error {
	var libraries, others []*workspace.Module
	for _, m := range w.Modules {
		if m.Public && len(m.File.Replace) > 0 {
			libraries = append(libraries, m)
		} else {
			others = append(others, m)
		}
	}
	return errors.Join(each(w, libraries, "build", "./..."), each(w, others, "list", "-deps", "./..."))
}

// each runs the go command in each of modules without the workspace. A module with commands has no
// replace directives, so the go command reads them from a temporary copy of the go.mod.
func each(w *workspace.Workspace, modules []*workspace.Module, args ...string) error {
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var errs []error
	for _, m := range modules {
		args := args
		if m.Public && len(m.File.Replace) == 0 {
			file := filepath.Join(temp, m.Name()+".mod")
			if err := withReplace(w, m, file); err != nil {
				return err
			}
			last := len(args) - 1
			args = append(append(args[:last:last], "-modfile="+file), args[last])
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = m.Folder
		cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+m.Folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("%s: go %s: %w\n%s", m.Dir, strings.Join(args, " "), err, out))
		}
	}
	return errors.Join(errs...)
}

// withReplace writes to file the go.mod of m with a replace directive for each module of this
// repository, and the go.sum of m beside it.
func withReplace(w *workspace.Workspace, m *workspace.Module, file string) error {
	text, err := m.File.Format()
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return err
	}
	for _, r := range m.File.Require {
		for _, other := range w.Modules {
			if other.Path == r.Mod.Path {
				if err := mod.AddReplace(other.Path, "", other.Folder, ""); err != nil {
					return err
				}
			}
		}
	}
	if text, err = mod.Format(); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(m.Folder, "go.sum"))
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".mod")+".sum", sums, 0o644)
}

// tag checks that version can be released, and tags every public module.
func tag(w *workspace.Workspace, version string, dry bool) error {
	changes, err := os.ReadFile(filepath.Join(w.Folder, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	errs := []error{checkModules(w, version), checkAPI(w), checkChangelog(string(changes), version)}
	status, err := git(w, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		errs = append(errs, fmt.Errorf("the working tree has changes that no commit has:\n%s", status))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, m := range w.Public() {
		name := m.Tag(version)
		fmt.Println(name)
		if dry {
			continue
		}
		if _, err := git(w, "tag", "-a", "-m", m.Path+" "+version, name); err != nil {
			return err
		}
	}
	if !dry {
		fmt.Println("publish them with: git push --follow-tags")
	}
	return nil
}

// checkChangelog checks that the newest heading of the changelog names version, with a date.
func checkChangelog(text, version string) error {
	newest := regexp.MustCompile(`(?m)^## .*$`).FindString(text)
	want := regexp.MustCompile(`^## ` + regexp.QuoteMeta(strings.TrimPrefix(version, "v")) + ` - \d{4}-\d\d-\d\d$`)
	if !want.MatchString(newest) {
		return fmt.Errorf("CHANGELOG.md: the newest heading is %q, want \"## %s - YYYY-MM-DD\"",
			newest, strings.TrimPrefix(version, "v"))
	}
	return nil
}

func git(w *workspace.Workspace, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", w.Folder}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
