package consullock

import (
	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusals are the error answers of an agent, by status. The text behind a colon is a part of the
// message. The first row that fits counts.
//
// A server error without a row of its own refuses nothing: a leader that loses its office sends
// such an answer to requests that it may have carried out.
var refusals = classes.Table{
	// About the key.
	{"409", classes.Stored, "a condition of the transaction is not true, see refusalOf"},

	// The login. Tokens are replaced while programs run.
	{"403: ACL not found", classes.Connection, "the token was deleted, or is not known to the server yet"},
	{"401", classes.Connection, "the login is missing or not accepted"},
	{"407", classes.Connection, "a proxy wants a login"},

	// The moment.
	{"425", classes.Moment, "the request came too early on a new connection"},
	{"429", classes.Moment, "too many requests, or too many connections of one address"},
	{"500: Missing node registration", classes.Moment, "the agent has not joined the cluster yet"},
	{"500: No known Consul servers", classes.Moment, "the agent knows no server at the moment"},
	{"500: Not ready to serve consistent reads", classes.Moment, "the leader is new"},
	{"500: No path to datacenter", classes.Moment, "the servers know no server of the other datacenter"},
	{"500: Remote DC has no server", classes.Moment, "no server of the other datacenter is up"},

	// The request.
	{"500: Invalid Session TTL", classes.Request, "the servers permit no session as short or as long"},
	{"500: Session TTL", classes.Request, "the TTL is none"},
	{"4xx", classes.Request, "a right is missing, or the agent blames the request"},

	// The moment, and the write may have been carried out.
	{"5xx", classes.Doubt, "the servers elect a leader, or a server or a proxy has failed"},
}

// classOf returns the class of an answer.
func classOf(answer api.StatusError) classes.Class {
	return refusals.Answer(answer.Code, "", answer.Body)
}
