package redisport

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Class says which thing an error reply of a server refuses, see [driver.ErrRefused].
type Class int

const (
	Request    Class = iota // this request: a repetition has the same answer
	Connection              // the login, or the connection as a whole
	Moment                  // any such request, for a while
	Foreign                 // something other than a lock is under the name
	Topology                // the client is one for a single server, and the server is part of a cluster
	Unclear                 // a proxy answers in the place of the server: the request may have been carried out
)

// Refusal is a kind of error reply.
type Refusal struct {
	Prefix string // of the text without "ERR " and without the place in a script
	Class  Class
	Why    string
}

// Refusals are the error replies of Redis 6 to 8, of Valkey, and of Envoy. The first one that fits
// decides. A reply that is not listed refuses the request.
var Refusals = []Refusal{
	// Redirections.
	{"MOVED ", Moment, "the slot is at another server, and the client asks where"},
	{"ASK ", Moment, "the slot is moving to another server"},
	{"TRYAGAIN ", Moment, "the keys are on two servers while their slot moves"},
	{"REDIRECT ", Moment, "a failover is under way: Valkey names the new master"},
	{"CROSSSLOT ", Request, "the keys of the request are in two slots"},

	// The state of a server.
	{"LOADING ", Moment, "the server reads its data after a start"},
	{"BUSY ", Moment, "another client's script runs for long"},
	{"MASTERDOWN ", Moment, "a replica has lost its master: a failover follows"},
	{"READONLY ", Moment, "the server has become a replica"},
	{"CLUSTERDOWN ", Moment, "the cluster elects a master"},
	{"NOREPLICAS ", Moment, "too few replicas are connected"},
	{"MISCONF ", Moment, "the disk is full or fails"},
	{"OOM ", Moment, "the memory is full"},
	{"max number of clients ", Moment, "the server has no place for one more connection"},
	{"Script killed by user", Moment, "an administrator ended a script that had written nothing"},
	{"INPROG ", Moment, "a failover is under way"},
	{"NOGOODSLAVE ", Moment, "a sentinel has no replica for a failover yet"},
	{"NOQUORUM ", Moment, "too few sentinels are up"},
	{"NOMASTERLINK ", Moment, "a replica has not found its master yet"},
	{"IOERR ", Moment, "the server could not reach another server"},

	// Logins.
	{"NOAUTH ", Connection, "a password was set after the connection was made, or is missing"},
	{"WRONGPASS ", Connection, "the password or the user is not accepted"},
	{"DENIED ", Connection, "the protected mode accepts no connection from other machines"},
	{"AUTH ", Connection, "the server has no password, and the client sends one"},
	{"Client sent AUTH", Connection, "the same from Redis 5 and from proxies"},
	{"invalid password", Connection, "the password is not accepted by Redis 5"},
	{"Protocol error: unauthenticated ", Connection, "without a login, requests have to be short"},
	{"NOPROTO ", Connection, "the server does not speak the client's version of the protocol"},
	{"DB index is out of range", Connection, "the server has fewer databases"},

	// These are about the stored value.
	{"WRONGTYPE ", Foreign, "the key has another type"},
	{"FOREIGN ", Foreign, "a script of this module found no lock under the name"},
	{"value is not an integer", Foreign, "a counter is no number"},
	{"hash value is not an integer", Foreign, "a count is no number"},
	{"value is not a valid float", Foreign, "a score is no number"},

	// The request itself.
	{"NOPERM ", Request, "the user lacks a permission"},
	{"NOSCRIPT ", Request, "the client sends the script as a whole, and gets this for its hash alone"},
	{"EXECABORT ", Request, "a command of a transaction was refused"},
	{"NOTBUSY ", Request, "there is no script to end"},
	{"UNKILLABLE ", Request, "the script to end has written"},
	{"UNBLOCKED ", Request, "an administrator ended the wait of a blocking command"},
	{"BUSYKEY ", Request, "the key of a RESTORE exists"},
	{"BUSYGROUP ", Request, "the group of a stream exists"},
	{"NOGROUP ", Request, "a stream has no such group"},
	{"NOSUB ", Request, "the connection has no subscriptions"},
	{"INVALIDOBJ ", Request, "the value of a HyperLogLog is damaged"},
	{"Protocol error", Request, "the server does not understand what the client sends"},
	{"unknown command", Request, "the server does not have the command, or it was renamed"},
	{"SELECT is not allowed in cluster mode", Topology, "a cluster has one database"},

	// These are of proxies, whose replies lack a code.
	{"no upstream host", Moment, "Envoy knows no server that is up"},
	{"upstream failure", Unclear, "Envoy has lost the connection to the server"},
	{"upstream protocol error", Unclear, "Envoy does not understand the server's reply"},
}

// wrapping is the text that Redis 6 puts before the error of a command in a script.
var wrapping = regexp.MustCompile(`^(Error running script \(call to f_\w+\): )?(@user_script: ?\d+: )*-?`)

// ClassOf returns the class of an error reply with this text. cluster says whether the client
// expects a cluster.
func ClassOf(text string, cluster bool) Class {
	bare := strings.TrimPrefix(text, "ERR ")
	bare = strings.TrimPrefix(bare[len(wrapping.FindString(bare)):], "ERR ")
	if strings.Contains(bare, "WRONGTYPE") || strings.Contains(bare, "is not an integer") {
		return Foreign // also in the text of an error in a script
	}
	if !cluster && (strings.HasPrefix(bare, "MOVED ") || strings.HasPrefix(bare, "ASK ") ||
		strings.HasPrefix(bare, "CROSSSLOT ")) {
		return Topology
	}
	for _, r := range Refusals {
		if strings.HasPrefix(bare, r.Prefix) {
			return r.Class
		}
	}
	return Request
}

// ErrCluster is the error of a client of one server if the server is part of a cluster.
var ErrCluster = errors.New("the server is part of a cluster, which needs a client of the cluster")

// Refused returns the meaning of err, an error reply of the server with this text. cluster says
// whether the client expects a cluster.
func Refused(text string, cluster bool, err error) error {
	switch ClassOf(text, cluster) {
	case Foreign:
		return fmt.Errorf("%w: %w", locks.ErrForeign, err)
	case Topology:
		return Never(fmt.Errorf("%w: %w", ErrCluster, err))
	case Connection:
		return driver.Mark(err, driver.ErrRefused, driver.ErrLogin)
	case Moment:
		return Unavailable(err)
	case Unclear:
		return err
	}
	return Never(err)
}
