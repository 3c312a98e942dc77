package redisport

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// Redis has two classes of its own. The answer of a proxy in the place of the server is Unclear.
const (
	Foreign  = classes.Own + iota // something other than a lock is under the name
	Topology                      // the client is one for a single server, and the server is part of a cluster
)

// Refusals are the error replies of Redis 6 to 8, of Valkey, and of Envoy. The code is how a reply
// begins without "ERR " and without the place in a script. The first row that fits decides. A reply
// that is not listed refuses the request.
var Refusals = classes.Table{
	// Redirections.
	{"MOVED ", classes.Moment, "the slot is at another server, and the client asks where"},
	{"ASK ", classes.Moment, "the slot is moving to another server"},
	{"TRYAGAIN ", classes.Moment, "the keys are on two servers while their slot moves"},
	{"REDIRECT ", classes.Moment, "a failover is under way: Valkey names the new master"},

	// The state of a server.
	{"LOADING ", classes.Moment, "the server reads its data after a start"},
	{"BUSY ", classes.Moment, "another client's script runs for long"},
	{"MASTERDOWN ", classes.Moment, "a replica has lost its master: a failover follows"},
	{"READONLY ", classes.Moment, "the server has become a replica"},
	{"CLUSTERDOWN ", classes.Moment, "the cluster elects a master"},
	{"NOREPLICAS ", classes.Moment, "too few replicas are connected"},
	{"MISCONF ", classes.Moment, "the disk is full or fails"},
	{"OOM ", classes.Moment, "the memory is full"},
	{"max number of clients ", classes.Moment, "the server has no place for one more connection"},
	{"Script killed by user", classes.Moment, "an administrator ended a script that had written nothing"},
	{"INPROG ", classes.Moment, "a failover is under way"},
	{"NOGOODSLAVE ", classes.Moment, "a sentinel has no replica for a failover yet"},
	{"NOQUORUM ", classes.Moment, "too few sentinels are up"},
	{"NOMASTERLINK ", classes.Moment, "a replica has not found its master yet"},
	{"IOERR ", classes.Moment, "the server could not reach another server"},

	// Logins.
	{"NOAUTH ", classes.Connection, "a password was set after the connection was made, or is missing"},
	{"WRONGPASS ", classes.Connection, "the password or the user is not accepted"},
	{"DENIED ", classes.Connection, "the protected mode accepts no connection from other machines"},
	{"AUTH ", classes.Connection, "the server has no password, and the client sends one"},
	{"Client sent AUTH", classes.Connection, "the same from Redis 5 and from proxies"},
	{"invalid password", classes.Connection, "the password is not accepted by Redis 5"},
	{"Protocol error: unauthenticated ", classes.Connection, "without a login, requests have to be short"},
	{"NOPROTO ", classes.Connection, "the server does not speak the client's version of the protocol"},
	{"DB index is out of range", classes.Connection, "the server has fewer databases"},

	// The replies below are about the stored value.
	{"FOREIGN ", Foreign, "a script of this module found no lock under the name"},
	{"value is not a valid float", Foreign, "a score is no number"},

	// The client.
	{"SELECT is not allowed in cluster mode", Topology, "a cluster has one database"},

	// The replies below are of proxies, and lack a code.
	{"no upstream host", classes.Moment, "Envoy knows no server that is up"},
	{"upstream failure", classes.Unclear, "Envoy has lost the connection to the server"},
	{"upstream protocol error", classes.Unclear, "Envoy does not understand the server's reply"},
}

// wrapping is the text that Redis 6 puts before the error of a command in a script.
var wrapping = regexp.MustCompile(`^(Error running script \(call to f_\w+\): )?(@user_script: ?\d+: )*-?`)

// ClassOf returns the class of an error reply with this text. cluster says whether the client
// expects a cluster.
func ClassOf(text string, cluster bool) classes.Class {
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
		if strings.HasPrefix(bare, r.Code) {
			return r.Class
		}
	}
	return classes.Request
}

// ErrCluster is the error of a client of one server if the server is part of a cluster.
var ErrCluster = errors.New("the server is part of a cluster, which needs a client of the cluster")

// Refused returns the meaning of err, an error reply of the server with this text. cluster says
// whether the client expects a cluster.
func Refused(text string, cluster bool, err error) error {
	switch c := ClassOf(text, cluster); c {
	case Foreign:
		return fmt.Errorf("%w: %w", locks.ErrForeign, err)
	case Topology:
		return Never(fmt.Errorf("%w: %w", ErrCluster, err))
	default:
		return c.Mark(err)
	}
}
