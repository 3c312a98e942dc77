package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
)

// signals gives the signals of this process to the command. Without a command, a signal that ends
// processes ends the wait for the lock.
type signals struct {
	c      chan os.Signal
	done   chan struct{}
	cancel context.CancelCauseFunc
	always bool // a signal that ends processes ends the context while the command runs, too

	mu   sync.Mutex
	to   *child
	gave bool // a signal that ends processes went to a command
}

func watchSignals(cancel context.CancelCauseFunc, always bool) *signals {
	s := &signals{c: make(chan os.Signal, 16), done: make(chan struct{}), cancel: cancel, always: always}
	catch(s.c)
	go func() {
		defer close(s.done)
		for sig := range s.c {
			s.deliver(sig)
		}
	}()
	return s
}

func (s *signals) deliver(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reaped(sig) {
		return
	}
	code := endingSignal(sig)
	if s.to != nil {
		s.to.signal(sig)
		s.gave = s.gave || code != 0
	}
	if code != 0 && (s.to == nil || s.always) {
		s.cancel(failure{code: code})
	}
}

// start starts the command, unless ctx has ended.
func (s *signals) start(ctx context.Context, c *child) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.start(); err != nil {
		return failure{exitNotRunnable, err}
	}
	s.to = c
	return nil
}

// ended stops the delivery to the command, which has ended.
func (s *signals) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = nil
}

// forwarded reports whether a command got a signal that ends processes.
func (s *signals) forwarded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gave
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.c)
	<-s.done
}
