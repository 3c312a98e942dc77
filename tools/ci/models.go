package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modelFolders have the models. The third folder uses the script of the second.
var modelFolders = []string{"internal/syncq/model", "distributed/lease/model", "distributed/caslock/model"}

// models checks the models of each folder. A search has the same result each time. So the gate
// repeats the table of a folder that this machine has checked before, as go vet does: with the same
// files and with the same programs. The full run searches each time.
func models(ctx context.Context, j *job) error {
	for _, folder := range modelFolders {
		known, err := j.knownTable(ctx, folder)
		if err != nil {
			return err
		}
		if table, err := os.ReadFile(known); err == nil && !j.full {
			fmt.Fprintf(&j.out, "%s%s: checked before, with the same files\n", table, folder)
			continue
		}
		before := len(j.out.Bytes())
		if err := j.sh(ctx, "bash", folder+"/run.sh"); err != nil {
			return err
		}
		if err := keep(known, j.out.Bytes()[before:]); err != nil {
			return err
		}
	}
	return nil
}

// knownTable returns the name of the file that has the table of a folder, if this machine has
// checked it before. The name depends on all that the table depends on.
func (j *job) knownTable(ctx context.Context, folder string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	programs, err := j.output(ctx, "sh", "-c", "spin -V && gcc --version")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", folder, programs)
	for _, pattern := range []string{folder + "/*", "distributed/lease/model/*.sh"} {
		names, err := filepath.Glob(j.path(pattern))
		if err != nil {
			return "", err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(name), len(text), text)
		}
	}
	name := fmt.Sprintf("%s-%x", strings.ReplaceAll(folder, "/", "-"), sum.Sum(nil)[:12])
	return filepath.Join(cache, "locks-models", name), nil
}

// keep writes a file of the cache. Another run sees all of it or nothing.
func keep(name string, text []byte) error {
	folder := filepath.Dir(name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
