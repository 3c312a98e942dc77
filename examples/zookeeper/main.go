// Command zookeeper lets two clients take turns at a lock on ZooKeeper. It prints the fencing
// token of each hold, and each change of the state of a session.
//
//	go run ./examples/zookeeper
//	ZOOKEEPER=localhost:2181 go run ./examples/zookeeper
//
// Without ZOOKEEPER it starts a server itself, if Debian's libzookeeper-java is installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	servers := strings.Split(os.Getenv("ZOOKEEPER"), ",")
	if servers[0] == "" {
		addr, stop, err := start()
		if err != nil {
			return err
		}
		defer stop()
		servers = []string{addr}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	var wg sync.WaitGroup
	failed := make([]error, 2)
	for i, name := range []string{"ada", "grace"} {
		wg.Go(func() { failed[i] = worker(ctx, servers, name) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

func worker(ctx context.Context, servers []string, name string) error {
	provider, err := zklock.New(ctx, servers, zklock.WithSessionTimeout(4*time.Second),
		zklock.WithState(func(s zklock.State) { fmt.Println(name, "is told: session", s) }))
	if err != nil {
		return err
	}
	defer provider.Close(context.Background())
	lock := provider.Mutex("examples/orders")
	for range 3 {
		err := locks.Do(ctx, lock, func(ctx context.Context) error {
			hold, err := lock.Hold(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("%s has the lock, with token %d\n", name, hold.Token())
			select {
			case <-ctx.Done(): // also when the lock is lost
				return context.Cause(ctx)
			case <-time.After(200 * time.Millisecond): // the work
				return nil
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// start runs a server of our own.
func start() (addr string, stop func(), err error) {
	const jars = "/usr/share/java/"
	if _, err := os.Stat(jars + "zookeeper.jar"); err != nil {
		return "", nil, errors.New("no server: set ZOOKEEPER=host:port, or install libzookeeper-java and a JRE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp("", "zookeeper")
	if err != nil {
		return "", nil, err
	}
	_, port, _ := strings.Cut(addr, ":")
	config := "tickTime=200\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n" +
		fmt.Sprintf("dataDir=%s\nclientPort=%s\n", dir, port)
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	path := jars + strings.Join([]string{
		"zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "slf4j-nop.jar", "netty-all.jar",
		"snappy-java.jar", "metrics-core.jar", "commons-cli.jar",
	}, ":"+jars)
	cmd := exec.Command("java", "-Xmx128m", "-Dzookeeper.jmx.log4j.disable=true", "-cp", path,
		"org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(dir, "zoo.cfg"))
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	return addr, func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}, nil
}
