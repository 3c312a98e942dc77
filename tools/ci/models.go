package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// modelFolders have the models. The third folder uses the script of the second.
var modelFolders = []string{"internal/syncq/model", "distributed/lease/model", "distributed/caslock/model"}

// models checks the models of each folder. A search has the same result each time. So the gate
// repeats the lines of a model that this machine has checked before, as go vet does: with the same
// files and with the same programs. The full run searches each time.
func models(ctx context.Context, j *job) error {
	programs, err := j.output(ctx, "sh", "-c", "spin -V && gcc --version")
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	for _, folder := range modelFolders {
		known, err := j.knownTables(folder, filepath.Join(cache, "locks-models"), programs)
		if err != nil {
			return err
		}
		var search []string
		for _, model := range slices.Sorted(maps.Keys(known)) {
			if table, err := os.ReadFile(known[model]); err == nil && !j.full {
				fmt.Fprintf(&j.out, "%s%s/%s: checked before, with the same files\n", table, folder, model)
			} else {
				search = append(search, model)
			}
		}
		if len(search) == 0 {
			continue
		}
		before := len(j.out.Bytes())
		if err := j.sh(ctx, "bash", folder+"/run.sh", strings.Join(search, `\|`)); err != nil {
			return err
		}
		lines := make(map[string][]byte)
		for line := range bytes.Lines(j.out.Bytes()[before:]) {
			if fields := bytes.Fields(line); len(fields) > 1 {
				model := string(fields[1])
				lines[model] = append(lines[model], line...)
			}
		}
		for _, model := range search {
			if err := keep(known[model], lines[model]); err != nil {
				return err
			}
		}
	}
	return nil
}

// modelName matches the names of models in a script.
var modelName = regexp.MustCompile(`\b[a-z]+\.pml\b`)

// knownTables returns the models that the script of a folder checks, and for each of them the file
// with its lines, if this machine has checked it before. The file's name depends on all that the
// lines depend on. These are the programs, the model, and the files that no line of the script
// names. The scripts count without the lines of other models.
func (j *job) knownTables(folder, cache, programs string) (map[string]string, error) {
	shared, texts := new(bytes.Buffer), make(map[string][]byte)
	fmt.Fprintf(shared, "%s\n%s\n", folder, programs)
	script, err := os.ReadFile(j.path(folder + "/run.sh"))
	if err != nil {
		return nil, err
	}
	for _, model := range modelName.FindAllString(string(script), -1) {
		texts[model] = nil
	}
	for _, pattern := range []string{folder + "/*.pml", folder + "/*.sh", "distributed/lease/model/*.sh"} {
		names, err := filepath.Glob(j.path(pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			base := filepath.Base(name)
			if _, own := texts[base]; own {
				texts[base] = text
			} else if base != "run.sh" {
				fmt.Fprintf(shared, "%s %d\n%s", base, len(text), text)
			}
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s/run.sh names no model", folder)
	}
	known := make(map[string]string)
	for model, text := range texts {
		sum := sha256.New()
		sum.Write(shared.Bytes())
		fmt.Fprintf(sum, "%s %d\n%s", model, len(text), text)
		for line := range bytes.Lines(script) {
			if name := modelName.Find(line); name == nil || string(name) == model {
				sum.Write(line)
			}
		}
		name := fmt.Sprintf("%s-%s-%x", strings.ReplaceAll(folder, "/", "-"), model, sum.Sum(nil)[:12])
		known[model] = filepath.Join(cache, name)
	}
	return known, nil
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
