package simulated_test

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// message is a request or its answer, as one line of JSON.
type message struct {
	Op       string
	Request  driver.Request
	Holds    []driver.HoldID
	TTL      time.Duration
	Reply    driver.Reply
	Renewed  []bool
	Released driver.Released
}

// Serve carries out the request that comes over conn.
func (s *store) Serve(conn net.Conn) {
	defer conn.Close()
	var m message
	if json.NewDecoder(conn).Decode(&m) != nil {
		return
	}
	ctx := context.Background()
	switch m.Op {
	case "acquire":
		m.Reply, _ = s.Acquire(ctx, m.Request)
	case "lookup":
		m.Reply, _ = s.Lookup(ctx, m.Request)
	case "renew":
		m.Renewed, _ = s.Renew(ctx, m.Holds, m.TTL)
	case "release":
		m.Released, _ = s.Release(ctx, m.Request.HoldID)
	}
	_ = json.NewEncoder(conn).Encode(m)
}

// client is the [driver.Store] of one process. It connects for each request.
type client struct {
	dial func() (net.Conn, error)
}

// ask sends a request once, and returns its answer. After an error nobody knows whether the server
// has carried it out, or will.
func (c *client) ask(ctx context.Context, m message) (answer message, err error) {
	conn, err := c.dial()
	if err != nil {
		return answer, driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err = json.NewEncoder(conn).Encode(m); err == nil {
		err = json.NewDecoder(conn).Decode(&answer)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// Acquire implements [driver.Store].
func (c *client) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	a, err := c.ask(ctx, message{Op: "acquire", Request: req})
	return a.Reply, err
}

// Lookup implements [driver.Store].
func (c *client) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	a, err := c.ask(ctx, message{Op: "lookup", Request: req})
	return a.Reply, err
}

// Renew implements [driver.Store].
func (c *client) Renew(ctx context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error) {
	a, err := c.ask(ctx, message{Op: "renew", Holds: holds, TTL: ttl})
	return a.Renewed, err
}

// Release implements [driver.Store].
func (c *client) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	a, err := c.ask(ctx, message{Op: "release", Request: driver.Request{HoldID: id}})
	return a.Released, err
}

// Watch implements [driver.Store]. It returns nil: the server does not notify.
func (c *client) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }
