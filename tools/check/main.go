// A contributor runs check after each change: `make check`. Check formats, vets, and tests the
// packages that the changed files can break.
//
//	check               what differs from the branch main
//	check ./fair ...    these packages
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jucgo/locks/tools/internal/workspace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := workspace.Open(".")
	if err == nil {
		err = check(ctx, w, os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		stop()
		os.Exit(1)
	}
}

// check runs all checks, and prints why it runs them.
func check(ctx context.Context, w *workspace.Workspace, named []string, out io.Writer) error {
	c := &checker{ctx: ctx, w: w, out: out, listed: map[string][]goPackage{}}
	if err := c.format(); err != nil {
		return err
	}
	if len(named) > 0 {
		p := newPlan()
		for _, name := range named {
			name = path.Clean(strings.TrimPrefix(filepath.ToSlash(name), workspace.Root+"/"))
			if info, err := os.Stat(filepath.Join(w.Folder, name)); err != nil || !info.IsDir() {
				return fmt.Errorf("%s is no package of this repository", name)
			}
			p.add(name, "")
		}
		return c.do(p)
	}
	changed, err := c.changed()
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		fmt.Fprintln(out, "no file differs from main")
		return nil
	}
	p, err := c.plan(changed)
	if err != nil {
		return err
	}
	p.print(out)
	return c.do(p)
}

type checker struct {
	ctx context.Context
	w   *workspace.Workspace
	out io.Writer

	listed map[string][]goPackage // by module
}

// in returns the path of a file or folder of the repository.
func (c *checker) in(name string) string { return filepath.Join(c.w.Folder, filepath.FromSlash(name)) }

func (c *checker) has(name string) bool {
	_, err := os.Stat(c.in(name))
	return err == nil
}

// command returns a command that runs in a folder of the repository. A module that the list of
// modules does not have is built alone.
func (c *checker) command(folder, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.ctx, name, args...)
	cmd.Dir = c.in(folder)
	if name == "go" && !slices.ContainsFunc(c.w.Modules, func(m *workspace.Module) bool { return m.Dir == folder }) {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	cmd.Stderr = os.Stderr
	return cmd
}

func (c *checker) run(folder, name string, args ...string) error {
	cmd := c.command(folder, name, args...)
	cmd.Stdout, cmd.Stderr = c.out, c.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", name, folder, err)
	}
	return nil
}

func (c *checker) format() error {
	unformatted, err := c.command(".", "gofmt", "-l", ".").Output()
	if err != nil {
		return fmt.Errorf("gofmt: %w", err)
	}
	if len(unformatted) > 0 {
		return fmt.Errorf("gofmt would change:\n%s", unformatted)
	}
	return nil
}

// changed returns the files that differ from main, with the files that git does not track yet and
// the files that are gone.
func (c *checker) changed() ([]string, error) {
	git := func(args ...string) ([]string, error) {
		out, err := c.command(".", "git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 || r == '\n' }), nil
	}
	var base []string
	var err error
	for _, branch := range []string{"origin/main", "main"} {
		if c.command(".", "git", "rev-parse", "-q", "--verify", branch).Run() != nil {
			continue
		}
		if base, err = git("merge-base", "HEAD", branch); err == nil {
			break
		}
	}
	if len(base) == 0 {
		return nil, errors.Join(errors.New("git has no branch main to compare with"), err)
	}
	differing, err := git("diff", "--no-renames", "--name-only", "-z", base[0])
	if err != nil {
		return nil, err
	}
	others, err := git("ls-files", "--others", "--exclude-standard", "-z")
	return slices.Sorted(slices.Values(append(differing, others...))), err
}

// do vets and tests what p has.
func (c *checker) do(p *plan) error {
	var errs []error
	byModule := map[string][]string{}
	for folder := range p.packages {
		module := c.module(folder)
		pattern := "."
		if folder != module {
			pattern = "./" + strings.TrimPrefix(strings.TrimPrefix(folder, module), "/")
		}
		byModule[module] = append(byModule[module], pattern)
	}
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		patterns := slices.Sorted(slices.Values(byModule[module]))
		if err := c.run(module, "go", append([]string{"vet"}, patterns...)...); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, c.run(module, "go", append([]string{"test", "-race"}, patterns...)...))
	}
	for _, folder := range slices.Sorted(maps.Keys(p.models)) {
		if _, err := exec.LookPath("spin"); err != nil && os.Getenv("CI") == "" {
			fmt.Fprintf(c.out, "%s is not checked: spin is not installed\n", folder)
			continue
		}
		args := []string{"run.sh"}
		if words := p.models[folder]; words != nil {
			args = append(args, strings.Join(words, `\|`))
		}
		errs = append(errs, c.run(folder, "bash", args...))
	}
	if len(byModule)+len(p.models) == 0 {
		fmt.Fprintln(c.out, "no package can differ")
	}
	return errors.Join(errs...)
}
