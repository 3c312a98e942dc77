package zklock

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// class says which thing an error refuses, see [driver.ErrRefused].
type class int

const (
	// unknown: the request got no answer, and may have been carried out.
	unknown class = iota
	// state: the answer tells the state of a node. The recipe handles it.
	state
	// request: this request. A repetition has the same answer.
	request
	// login: the credentials.
	login
	// moment: any such request, for a while.
	moment
	// ofSession: the session is over, or goes on over another connection. The client's session
	// follows.
	ofSession
	// foreign: something other than a lock is under the name.
	foreign
)

// codeClass is a kind of error: a code of the server, or an error that the ZooKeeper client makes.
type codeClass struct {
	Code  int32
	Err   error // of the ZooKeeper client, or nil if it does not know the code
	Class class
	Why   string
}

// refusals are the codes of ZooKeeper, 3.5 to 3.9, and the errors of its client for Go.
var refusals = []codeClass{
	// Failures in a server, or before it.
	{-1, nil, unknown, "a server has failed"},
	{-2, nil, unknown, "a server has found a contradiction"},
	{-3, nil, unknown, "a server has found damaged data"},
	{-4, nil, unknown, "the connection was lost"},
	{-5, nil, unknown, "a server has failed while it answered"},
	{-6, nil, request, "the server is too old for the request"},
	{-7, nil, unknown, "the time of the request is over"},
	{-8, zk.ErrBadArguments, request, "the server does not understand the request"},
	{-9, nil, unknown, "the client is in the wrong state"},
	{-12, nil, ofSession, "the server does not know the session"},
	{-13, nil, moment, "the next configuration has no quorum yet"},
	{-14, nil, moment, "the ensemble is being configured"},
	{-100, zk.ErrAPIError, request, "an error of the API"},
	{-116, zk.ErrClosing, unknown, "the client closes"},
	{-117, zk.ErrNothing, unknown, "the client has nothing to do"},
	{-122, nil, unknown, "the server has not answered in time"},
	{0, zk.ErrConnectionClosed, unknown, "the connection was closed"},

	// Answers that recipes expect.
	{-101, zk.ErrNoNode, state, "there is no such node"},
	{-103, zk.ErrBadVersion, state, "the node has another version"},
	{-110, zk.ErrNodeExists, state, "there is such a node"},
	{-111, zk.ErrNotEmpty, state, "the node has children"},
	{-121, nil, state, "there is no such watch"},
	{-108, zk.ErrNoChildrenForEphemerals, foreign, "the directory is an ephemeral node"},

	// The session and the login.
	{-112, zk.ErrSessionExpired, ofSession, "the session is over"},
	{-118, zk.ErrSessionMoved, ofSession, "the session has another connection: this request came too late"},
	{-115, zk.ErrAuthFailed, login, "the credentials are not accepted"},
	{-124, nil, login, "the server wants SASL, and has ended the session"},

	// The moment.
	{-119, nil, moment, "the server has lost the others, and is read only"},
	{-125, nil, moment, "the quota of the directory is used up"},
	{-127, nil, moment, "the server has too many requests to do"},

	// The request itself.
	{-102, zk.ErrNoAuth, request, "the ACL of the node does not permit it"},
	{-113, nil, request, "the callback is none"},
	{-114, zk.ErrInvalidACL, request, "the ACL is none, or needs credentials of another scheme"},
	{-120, nil, request, "the session is local to a server, which cannot make it a global one"},
	{-123, zk.ErrReconfigDisabled, request, "the ensemble may not be configured so"},
	{0, zk.ErrInvalidPath, request, "the path is none"},
	{0, zk.ErrInvalidFlags, request, "the flags are none"},
}

// unknownCode is the ZooKeeper client's text for codes that it does not know.
const unknownCode = "unknown error: "

// classOf returns the class of err.
func classOf(err error) class {
	if err == nil {
		return unknown
	}
	_, text, _ := strings.Cut(err.Error(), unknownCode)
	digits, _, _ := strings.Cut(text, ":")
	code, _ := strconv.Atoi(strings.TrimSpace(digits))
	for _, r := range refusals {
		if r.Err != nil && errors.Is(err, r.Err) || r.Err == nil && code != 0 && int32(code) == r.Code {
			return r.Class
		}
	}
	return unknown
}

// inDoubt reports whether err, of a request, is not an answer about a node: the request may have
// been carried out, or the session needs a look.
func inDoubt(err error) bool {
	if err == nil {
		return false
	}
	switch classOf(err) {
	case state, request, foreign:
		return false
	}
	return true
}

// outcome returns err as an error of a [driver.Store].
func outcome(err error) error {
	if err == nil || errors.Is(err, driver.ErrRefused) || errors.Is(err, locks.ErrForeign) {
		return err
	}
	switch classOf(err) {
	case request:
		return driver.Mark(err, driver.ErrRefused)
	case login:
		return driver.Mark(err, driver.ErrRefused, driver.ErrLogin)
	case moment:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	}
	return err
}
