package onrueidis

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// New returns the locks on the server, the cluster, or the master behind sentinels that client is
// connected to. See [redislock.New]. It never closes client. Close the Client before client.
func New(client rueidis.Client, opts ...redislock.Option) (*redislock.Client, error) {
	c, err := carry(client)
	if err != nil {
		return nil, err
	}
	return redislock.New(c, opts...)
}

// NewRedlock returns the locks on the servers of clients. Each server is an independent master. See
// [redlock.New].
func NewRedlock(clients []rueidis.Client, opts ...redislock.Option) (*redlock.Client, error) {
	carriers := make([]redis.UniversalClient, len(clients))
	known := make(map[rueidis.Client]bool)
	for i, c := range clients {
		carrier, err := carry(c)
		if err != nil {
			return nil, fmt.Errorf("onrueidis: server %d: %w", i, err)
		}
		if known[c] {
			return nil, fmt.Errorf("onrueidis: server %d is given twice", i)
		}
		known[c] = true
		carriers[i] = carrier
	}
	return redlock.New(carriers, opts...)
}

// NewGate returns a Gate for values on the server or cluster that client is connected to. See
// [redislock.NewGate].
func NewGate(client rueidis.Client) (*redislock.Gate, error) {
	c, err := carry(client)
	if err != nil {
		return nil, err
	}
	return redislock.NewGate(c)
}

// carry returns client's port in the form in which packages redislock and redlock accept it.
func carry(client rueidis.Client) (redis.UniversalClient, error) {
	p, err := newPort(client)
	if err != nil {
		return nil, err
	}
	return &goredis.Carrier{Port: p}, nil
}

// connectionsPerProcessor is how many connections the requests of a port use at a time.
const connectionsPerProcessor = 10

func newPort(client rueidis.Client) (*port, error) {
	if client == nil {
		return nil, errors.New("onrueidis: nil client")
	}
	p := &port{c: client, cluster: client.Mode() == rueidis.ClientModeCluster}
	procs := runtime.GOMAXPROCS(0)
	turns := connectionsPerProcessor * procs
	if !p.cluster {
		p.lanes = newLanes(client, lanesPerProcessor*procs)
		p.lanes.limitTime, p.lanes.laneless = p.limitTime, p.alone
		turns -= lanesPerProcessor * procs
	}
	p.turns = make(chan struct{}, turns)
	return p, nil
}
