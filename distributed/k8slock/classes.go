package k8slock

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusals are the error answers of an API server, and of proxies in front of it, by status and
// reason. The text behind a colon is a part of the message. The first row that fits counts.
var refusals = classes.Table{
	// About the object.
	{"409 Conflict", classes.Stored, "the object has another version"},
	{"409 AlreadyExists", classes.Stored, "the object is there"},

	// The login. Tokens and certificates are replaced while programs run.
	{"401", classes.Connection, "the token or the certificate has expired, or is not accepted"},
	{"403 Forbidden: system:anonymous", classes.Connection, "the client has sent no token and no certificate"},
	{"407", classes.Connection, "a proxy wants a login"},

	// The moment.
	{"403 Forbidden: not yet ready to handle request", classes.Moment, "the server is starting"},
	{"403 Forbidden: status unknown for quota", classes.Moment, "a quota is new, and has not been counted yet"},
	{"410", classes.Moment, "a list or a watch began too long ago"},
	{"425", classes.Moment, "the request came too early on a new connection"},
	{"429", classes.Moment, "too many requests: this one was not begun"},
	{"500: failed calling webhook", classes.Moment, "a webhook that has to permit the write does not answer"},
	{"500: etcdserver: mvcc: database space exceeded", classes.Moment, "the disk of etcd is full"},
	{"500: etcdserver: too many requests", classes.Moment, "etcd is overloaded"},

	// The moment, and the write may have been carried out.
	{"408", classes.Doubt, "a proxy did not get the request in time"},
	{"499", classes.Doubt, "the connection ended before the answer"},
	{"500: etcdserver: ", classes.Doubt, "etcd has failed, such as during an election"},
	{"500: rpc error: code = Unavailable", classes.Doubt, "the server has lost etcd"},
	{"500: rpc error: code = DeadlineExceeded", classes.Doubt, "etcd does not answer in time"},
	{"500: context deadline exceeded", classes.Doubt, "etcd does not answer in time"},
	{"500 ServerTimeout", classes.Doubt, "the server cannot reach etcd"},

	// The request may have been carried out, and the answer may stay the same.
	{"500", classes.Unclear, "the server has failed in another way"},
	{"5xx", classes.Doubt, "the server is overloaded, starting or ending, or a proxy has lost it"},
	{"3xx", classes.Unclear, "something other than the server may have sent the redirect"},

	// The request.
	{"4xx", classes.Request, "a right or the namespace is missing, or the server blames the request"},
}

// classOf returns the class of an answer.
func classOf(answer metav1.Status) classes.Class {
	return refusals.Answer(int(answer.Code), string(answer.Reason), answer.Message)
}
