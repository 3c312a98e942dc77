package natslock

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusals are the error answers of JetStream, by status and error code. The text behind a colon is
// a part of the description. The first row that fits counts. The last rows are errors of the
// connection, in the words of the library.
var refusals = classes.Table{
	// About the key.
	{"400 10071", classes.Stored, "the key has another revision"},
	{"400 10164", classes.Stored, "the key has another revision, in a cluster"},
	{"404 10037", classes.Stored, "the key is not there"},

	// The moment.
	{"429", classes.Moment, "too many requests"},
	{"400 10002", classes.Moment, "the account is full"},
	{"500 10028", classes.Moment, "the memory of the servers is full"},
	{"500 10047", classes.Moment, "the disk of the servers is full"},
	{"503 10023", classes.Moment, "the disk or the memory of the servers is full"},
	{"503 10077: maximum bytes exceeded", classes.Moment, "the bucket is full"},
	{"503 10077: maximum messages exceeded", classes.Moment, "the bucket has too many keys"},
	{"503 10163", classes.Moment, "an earlier write of the key is under way"},
	{"409 10158", classes.Moment, "an earlier message with this id is under way"},
	{"503 10035", classes.Moment, "the server does not know the account yet, or not any more"},
	{"503 10039", classes.Moment, "the server has not begun JetStream for the account yet"},
	{"503 10076", classes.Moment, "the server has not begun JetStream yet"},
	{"500 10118", classes.Moment, "the server is too old for the bucket"},

	// The moment, and the write may have been carried out.
	{"5xx", classes.Doubt, "the servers elect a leader, are starting, or have failed"},

	// The request.
	{"4xx", classes.Request, "the bucket was deleted or sealed, or the server blames the request"},

	// The connection. The library connects again by itself.
	{"nats: authorization violation", classes.Connection, "the login is not accepted"},
	{"nats: authentication expired", classes.Connection, "the login has expired"},
	{"nats: authentication revoked", classes.Connection, "the login was revoked"},
	{"nats: account authentication expired", classes.Connection, "the account has expired"},
	{"nats: maximum connections exceeded", classes.Moment, "the server has no place for one more connection"},
	{"nats: maximum account active connections exceeded", classes.Moment, "the account has no place for one more"},
	{"nats: outbound buffer limit exceeded", classes.Moment, "there is no connection, and nothing was sent"},
	{"nats: permissions violation", classes.Request, "a right is missing"},
	{"nats: connection closed", classes.Request, "the connection does not come back"},
	{"nats: connection draining", classes.Request, "the connection is being closed"},
	{"nats: maximum payload exceeded", classes.Request, "the server permits no message as large"},
	{"nats: headers not supported", classes.Request, "the server is too old"},
}

// classOf returns what an answer refuses.
func classOf(answer *jetstream.APIError) classes.Class {
	return refusals.Answer(answer.Code, fmt.Sprint(uint16(answer.ErrorCode)), answer.Description)
}

// connectionClass returns the class of an error of the library about the connection, if the table
// has the error. While it connects, the library returns the words of the server, with capital
// letters.
func connectionClass(err error) (c classes.Class, found bool) {
	if err == nil {
		return 0, false
	}
	said := strings.ToLower(err.Error())
	for _, r := range refusals {
		if words, ok := strings.CutPrefix(r.Code, "nats: "); ok && strings.Contains(said, words) {
			return r.Class, true
		}
	}
	return 0, false
}
