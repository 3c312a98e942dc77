package main

import (
	"context"
	"fmt"
	neturl "net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	_ "github.com/jucgo/locks/distributed/open/all"
)

// store is where the locks are. Which one it is shows nowhere else in this program.
type store struct {
	*open.Client
	// url is the URL by which openStore opens the same locks in another process, or "" if the locks
	// belong to this process.
	url string
	// remove removes the parts that were made for the store.
	remove func()
}

// Locker returns a lock with a name that no other program is likely to use.
func (s *store) Locker(name string) locks.TryLocker { return s.Client.Locker("locks-example-" + name) }

// Close ends all holds, and removes the parts that were made for the store. Only the first call
// does anything.
func (s *store) Close(ctx context.Context) error {
	err := s.Client.Close(ctx)
	s.remove()
	s.remove = func() {}
	return err
}

// patience is for how long a server may take to answer for the first time.
const patience = 5 * time.Second

// openStore returns the store at a URL, see package open. Three URLs have no address: file: and
// sqlite: are for a temporary place, and redis: is for a small server inside this program.
func openStore(ctx context.Context, url string) (*store, error) {
	s := &store{url: url, remove: func() {}}
	switch url {
	case "mem:":
		s.url = ""
	case "file:", "sqlite:":
		dir, err := os.MkdirTemp("", "locks-example")
		if err != nil {
			return nil, err
		}
		s.remove = func() { os.RemoveAll(dir) }
		path := (&neturl.URL{Path: filepath.ToSlash(dir)}).EscapedPath()
		s.url = map[string]string{
			"file:":   "file:" + path + "?kind=fenced",
			"sqlite:": "sqlite:" + path + "/locks.db",
		}[url]
		url = s.url
	case "redis:":
		addr, stop, err := startRedis()
		if err != nil {
			return nil, err
		}
		s.remove = stop
		s.url = fmt.Sprintf("redis://%s/0?kind=fenced", addr)
		url = s.url
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if s.Client, err = open.URL(ctx, url); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// startRedis runs a server until stop is called. Its keys do not age by themselves, so that they
// are made to.
func startRedis() (addr string, stop func(), err error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case now := <-tick.C:
				server.FastForward(now.Sub(last))
				last = now
			case <-end:
				return
			}
		}
	}()
	return server.Addr(), func() {
		close(end)
		<-ended
		server.Close()
	}, nil
}
