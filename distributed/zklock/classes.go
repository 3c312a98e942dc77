package zklock

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ZooKeeper has two classes of its own. An answer of class Stored tells the state of a node, which
// the recipe handles.
const (
	// ofSession: the session is over, or goes on over another connection. The client's session
	// follows.
	ofSession = classes.Own + iota
	// foreign: something other than a lock is under the name.
	foreign
)

// codeClass is a kind of error: a code of the server, or an error that the ZooKeeper client makes.
type codeClass struct {
	Code  int32
	Err   error // of the ZooKeeper client, or nil if it does not know the code
	Class classes.Class
	Why   string
}

// refusals are the codes of ZooKeeper, 3.5 to 3.9, and the errors of its client for Go. An error
// that is not listed is Unclear: the connection, the client or a server has failed.
var refusals = []codeClass{
	// Failures before a request is carried out.
	{-6, nil, classes.Request, "the server is too old for the request"},
	{-8, zk.ErrBadArguments, classes.Request, "the server does not understand the request"},
	{-12, nil, ofSession, "the server does not know the session"},
	{-13, nil, classes.Moment, "the next configuration has no quorum yet"},
	{-14, nil, classes.Moment, "the ensemble is being configured"},
	{-100, zk.ErrAPIError, classes.Request, "an error of the API"},

	// Answers that recipes expect.
	{-101, zk.ErrNoNode, classes.Stored, "there is no such node"},
	{-103, zk.ErrBadVersion, classes.Stored, "the node has another version"},
	{-110, zk.ErrNodeExists, classes.Stored, "there is such a node"},
	{-111, zk.ErrNotEmpty, classes.Stored, "the node has children"},
	{-121, nil, classes.Stored, "there is no such watch"},
	{-108, zk.ErrNoChildrenForEphemerals, foreign, "the directory is an ephemeral node"},

	// The session and the login.
	{-112, zk.ErrSessionExpired, ofSession, "the session is over"},
	{-118, zk.ErrSessionMoved, ofSession, "the session has another connection: this request came too late"},
	{-115, zk.ErrAuthFailed, classes.Connection, "the credentials are not accepted"},
	{-124, nil, classes.Connection, "the server wants SASL, and has ended the session"},

	// The moment.
	{-119, nil, classes.Moment, "the server has lost the others, and is read only"},
	{-125, nil, classes.Moment, "the quota of the directory is used up"},
	{-127, nil, classes.Moment, "the server has too many requests to do"},

	// The request itself.
	{-102, zk.ErrNoAuth, classes.Request, "the ACL of the node does not permit it"},
	{-113, nil, classes.Request, "the callback is none"},
	{-114, zk.ErrInvalidACL, classes.Request, "the ACL is none, or needs credentials of another scheme"},
	{-120, nil, classes.Request, "the session is local to a server, which cannot make it a global one"},
	{-123, zk.ErrReconfigDisabled, classes.Request, "the ensemble may not be configured so"},
	{0, zk.ErrInvalidPath, classes.Request, "the path is none"},
	{0, zk.ErrInvalidFlags, classes.Request, "the flags are none"},
}

// unknownCode is the ZooKeeper client's text for codes that it does not know.
const unknownCode = "unknown error: "

// classOf returns the class of err.
func classOf(err error) classes.Class {
	if err == nil {
		return classes.Unclear
	}
	_, text, _ := strings.Cut(err.Error(), unknownCode)
	digits, _, _ := strings.Cut(text, ":")
	code, _ := strconv.Atoi(strings.TrimSpace(digits))
	for _, r := range refusals {
		if r.Err != nil && errors.Is(err, r.Err) || r.Err == nil && code != 0 && int32(code) == r.Code {
			return r.Class
		}
	}
	return classes.Unclear
}

// inDoubt reports whether err, of a request, is not an answer about a node: the request may have
// been carried out, or the session needs a look.
func inDoubt(err error) bool {
	if err == nil {
		return false
	}
	switch classOf(err) {
	case classes.Stored, classes.Request, foreign:
		return false
	}
	return true
}

// outcome returns err as an error of a [driver.Store].
func outcome(err error) error {
	if err == nil || errors.Is(err, driver.ErrRefused) || errors.Is(err, locks.ErrForeign) {
		return err
	}
	return classOf(err).Mark(err)
}
