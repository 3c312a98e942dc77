// Package consumer tests what a user of the released modules does: go get, go install, and the
// programs of the READMEs, in modules outside of the repository.
package consumer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A user is a machine without this repository: its module proxy has the public modules as they are
// in the working tree.
type user struct {
	env     []string
	version string
}

func newUser(t *testing.T, w *workspace.Workspace) *user {
	t.Helper()
	u := &user{version: version(w)}
	proxy, cache := t.TempDir(), t.TempDir()
	for _, m := range w.Public() {
		publish(t, proxy, m, u.version)
	}
	// The second proxy is the cache of this machine, so that nothing is downloaded twice.
	known := "file://" + filepath.ToSlash(filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"))
	u.env = append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+known+","+goEnv(t, "GOPROXY"),
		"GOMODCACHE="+cache,
		"GOBIN="+t.TempDir(),
		// The checksum database knows no version of ours before its release.
		"GONOSUMDB=github.com/jucgo",
		"GOSUMDB=off",
		"GOWORK=off",
		// Without the paths of the folders, the build cache has the results of the last run.
		"GOFLAGS=-trimpath -modcacherw",
	)
	return u
}

// version returns the version that the modules of the repository require of each other.
func version(w *workspace.Workspace) string {
	for _, m := range w.Modules {
		for _, r := range m.File.Require {
			if workspace.Own(r.Mod.Path) {
				return r.Mod.Version
			}
		}
	}
	return ""
}

// publish puts m into the module proxy at folder.
func publish(t *testing.T, folder string, m *workspace.Module, version string) {
	t.Helper()
	dir := filepath.Join(folder, filepath.FromSlash(m.Path), "@v")
	must(t, os.MkdirAll(dir, 0o755))
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	must(t, err)
	must(t, zip.Create(file, module.Version{Path: m.Path, Version: version}, released(t, m)))
	must(t, file.Close())
	mod, err := os.ReadFile(filepath.Join(m.Folder, "go.mod"))
	must(t, err)
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	must(t, err)
	files := map[string][]byte{version + ".mod": mod, version + ".info": info, "list": []byte(version + "\n")}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
}

// A releasedFile is a file of a module's zip. Its name is its path in the module.
type releasedFile struct{ folder, name string }

func (f releasedFile) Path() string                 { return f.name }
func (f releasedFile) full() string                 { return filepath.Join(f.folder, filepath.FromSlash(f.name)) }
func (f releasedFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.full()) }
func (f releasedFile) Open() (io.ReadCloser, error) { return os.Open(f.full()) }

// released returns the files of a module that a release has: all but the go.work, which git
// ignores.
func released(t *testing.T, m *workspace.Module) []zip.File {
	t.Helper()
	checked, err := zip.CheckDir(m.Folder)
	must(t, err)
	var files []zip.File
	for _, file := range checked.Valid {
		name, err := filepath.Rel(m.Folder, file)
		must(t, err)
		if name != "go.work" && name != ".git" {
			files = append(files, releasedFile{m.Folder, filepath.ToSlash(name)})
		}
	}
	return files
}

// run runs a command in dir and returns its output.
func (u *user) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(u.env, "PWD="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// fresh makes a module of the user that has one file.
func (u *user) fresh(t *testing.T, main string) string {
	t.Helper()
	dir := t.TempDir()
	u.run(t, dir, "go", "mod", "init", "example.com/consumer")
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644))
	return dir
}

func TestAUserGetsAndInstallsTheReleasedModules(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	u := newUser(t, w)

	for _, m := range w.Public() {
		t.Run(m.Name(), func(t *testing.T) {
			var imports strings.Builder
			get := []string{"get", m.Path + "@" + u.version}
			for _, path := range imported(t, w, m) {
				fmt.Fprintf(&imports, "import _ %q\n", path)
				get = append(get, path+"@"+u.version)
			}
			dir := u.fresh(t, "package main\n\n"+imports.String()+"\nfunc main() {}\n")
			u.run(t, dir, "go", get...)
			u.run(t, dir, "go", "build", "-o", os.DevNull, ".")
		})
	}

	for path, args := range map[string][]string{
		"bench/fairness":          {"-h"},
		"bench/compare":           {"-h"},
		"cmd/locklab":             {"list"},
		"cmd/locklab/distributed": {"list"},
		"cmd/lockvet":             {"-V=full"},
	} {
		t.Run(strings.ReplaceAll(path, "/", "-"), func(t *testing.T) {
			command := workspace.Root + "/" + path + "@" + u.version
			u.run(t, t.TempDir(), "go", "install", command)
			if out := u.run(t, t.TempDir(), "go", append([]string{"run", command}, args...)...); out == "" {
				t.Errorf("go run %s %s printed nothing", command, args)
			}
		})
	}
}

// Its databases take minutes to compile. Its own tests run it.
func TestAUserCanResolveWithlock(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	u := newUser(t, w)
	command := workspace.Root + "/cmd/withlock"
	dir := u.fresh(t, "package main\n\nfunc main() {}\n")
	u.run(t, dir, "go", "get", command+"@"+u.version)
	u.run(t, dir, "go", "list", "-deps", command)
}

// Git for Windows, and many programs that unpack a zip, make a text file of a symbolic link. Git
// for Windows ends lines of text files with CR LF too, unless the repository says otherwise. The
// second command is compiled only: its tests have steps of their own.
func TestTheCommandsOfTheREADMEWorkInACloneWithoutLinks(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(w.Folder, "README.md"))
	must(t, err)
	block := regexp.MustCompile("(?s)```sh\ngit clone (\\S+) && cd locks\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("README.md does not say how to clone the repository")
	}
	dir := t.TempDir()
	u := &user{env: append(os.Environ(), "GOWORK=", "GOFLAGS=-trimpath")}
	git := []string{"-c", "core.symlinks=false", "-c", "core.autocrlf=true", "-c", "safe.directory=*"}
	u.run(t, dir, "git", append(git, "clone", "-q", w.Folder, "clone")...)
	u.run(t, dir, "git", append(git, "-C", w.Folder, "archive", "--prefix=zip/", "-o", filepath.Join(dir, "zip.tar"), "HEAD")...)
	u.run(t, dir, "tar", "-xf", "zip.tar")
	for _, kind := range []string{"clone", "zip"} {
		t.Run(kind, func(t *testing.T) {
			n := 0
			for line := range strings.Lines(string(block[2])) {
				line, _, _ = strings.Cut(line, " #")
				command := strings.Fields(line)
				if command[1] == "test" {
					command[1] = "vet"
				}
				u.run(t, filepath.Join(dir, kind), command[0], command[1:]...)
				n++
			}
			if n != 2 {
				t.Errorf("README.md has %d commands after the clone, want 2", n)
			}
			u.run(t, filepath.Join(dir, kind), "bash", ".ci/setup") // a carriage return would be a part of each command
			u.run(t, filepath.Join(dir, kind), "go", "list", "-m", workspace.Root+"/distributed/redislock")
		})
	}
}

// A copy of the root module has no other modules. A go.work in it would list them. The needs of its
// tests are resolved, and not compiled: compiling would take a minute.
func TestTheTestsOfADownloadedModuleResolve(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	u := newUser(t, w)
	dir := u.fresh(t, "package main\n\nfunc main() {}\n")
	u.run(t, dir, "go", "get", workspace.Root+"@"+u.version)
	copied := strings.TrimSpace(u.run(t, dir, "go", "list", "-m", "-f", "{{.Dir}}", workspace.Root))
	u.env = append(u.env, "GOWORK=")
	u.run(t, copied, "go", "list", "-test", "-deps", "./...")
}

// programs returns the complete programs that a page shows, in order.
func programs(t *testing.T, w *workspace.Workspace, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Folder, page))
	must(t, err)
	var found []string
	program := regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```$")
	for _, block := range program.FindAllStringSubmatch(string(text), -1) {
		found = append(found, block[1])
	}
	return found
}

// gets returns the arguments of the first go get on a page.
func gets(t *testing.T, w *workspace.Workspace, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Folder, page))
	must(t, err)
	line := regexp.MustCompile(`(?m)^go (get .+)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatalf("%s has no line of go get", page)
	}
	return strings.Fields(line[1])
}

// The README shows parts of programs. Its first command runs a complete program, and the README of
// redislock has a complete program for Redis.
func TestTheREADMEsProgramsWorkForAUser(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	u := newUser(t, w)
	local, err := os.ReadFile(filepath.Join(w.Folder, "examples", "local", "main.go"))
	must(t, err)
	onRedis := programs(t, w, "distributed/redislock/README.md")
	if len(onRedis) != 1 {
		t.Fatalf("the README of redislock has %d programs, want 1", len(onRedis))
	}
	text, err := os.ReadFile(filepath.Join(w.Folder, "README.md"))
	must(t, err)
	gets := regexp.MustCompile(`(?m)^go get (\S+)@latest`).FindAllStringSubmatch(string(text), -1)
	if len(gets) != 2 {
		t.Fatalf("README.md has %d lines of go get, want 2", len(gets))
	}

	t.Run("local", func(t *testing.T) {
		dir := u.fresh(t, string(local))
		u.run(t, dir, "go", "get", gets[0][1]+"@latest")
		out := u.run(t, dir, "go", "run", ".")
		if strings.Count(out, "bought a ticket\n") != 3 || strings.Count(out, "sold out\n") != 2 {
			t.Errorf("the program printed:\n%s", out)
		}
	})
	t.Run("redis", func(t *testing.T) {
		address := startRedis(t)
		u.env = append(u.env, "REDIS_ADDR="+address)
		dir := u.fresh(t, onRedis[0])
		u.run(t, dir, "go", "get", gets[0][1]+"@latest", gets[1][1]+"@latest")
		u.run(t, dir, "go", "build", "-o", "report", ".")
		if out := u.run(t, dir, "./report"); strings.Count(out, "write part ") != 3 {
			t.Errorf("the program printed:\n%s", out)
		}

		cmd := exec.CommandContext(t.Context(), "./report")
		cmd.Dir, cmd.Env = dir, u.env
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n')
		must(t, err)
		if reply := ask(t, address, "DEL report"); reply != ":1" {
			t.Errorf("Redis answered %q when the lock of the running program was deleted", reply)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "the report is incomplete") {
			t.Errorf("the program lost its lock, and ended with %v:\n%s", err, stderr.String())
		}
	})
}

// The README of each store has one program. The imports of sqllock's and open's are only
// resolved, because SQLite takes minutes to compile. The tests of examples/stores run all
// programs on servers.
func TestEachStoresProgramWorksForAUser(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	u := newUser(t, w)
	for _, store := range []string{
		"filelock", "redislock", "etcdlock", "consullock", "natslock", "dynamolock", "s3lock", "gcslock", "k8slock",
		"zklock", "sqllock", "open",
	} {
		t.Run(store, func(t *testing.T) {
			shown := programs(t, w, "distributed/"+store+"/README.md")
			if len(shown) != 1 {
				t.Fatalf("the README has %d programs, want 1", len(shown))
			}
			dir := u.fresh(t, shown[0])
			u.run(t, dir, "go", gets(t, w, "distributed/"+store+"/README.md")...)
			if store == "sqllock" || store == "open" {
				u.run(t, dir, "go", "mod", "tidy")
				u.run(t, dir, "go", "list", "-deps", ".")
				return
			}
			u.run(t, dir, "go", "build", "-o", "report", ".")
			if store != "filelock" {
				return
			}
			u.env = append(u.env, "LOCK_DIR="+t.TempDir())
			if out := u.run(t, dir, "./report"); strings.Count(out, "write part ") != 3 {
				t.Errorf("the program printed:\n%s", out)
			}
		})
	}
}

// startRedis starts a Redis server for the test and returns its address.
func startRedis(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address = l.Addr().String()
	must(t, l.Close())
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	server, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("redis-server is missing")
	}
	must(t, err)
	cmd := exec.Command(server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			must(t, conn.Close())
			return address
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
	}
}

// ask sends one command to Redis and returns the first line of the reply.
func ask(t *testing.T, address, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "%s\r\n", command)
	must(t, err)
	reply, err := bufio.NewReader(conn).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(reply)
}

// imported returns the import paths of m, from the list of its exported API.
func imported(t *testing.T, w *workspace.Workspace, m *workspace.Module) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Folder, "api", m.Name()+".txt"))
	if os.IsNotExist(err) {
		return nil // a module of commands
	}
	must(t, err)
	var paths []string
	for _, match := range regexp.MustCompile(`(?m)^(\S+): package `).FindAllStringSubmatch(string(text), -1) {
		path := workspace.Root + "/" + match[1]
		if match[1] == workspace.Root {
			path = workspace.Root
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		t.Fatalf("api/%s.txt names no package", m.Name())
	}
	return paths
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
