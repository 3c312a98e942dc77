package etcdlock

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// etcd has two classes of its own.
const (
	// brief: any such request, until an election or the like is over.
	brief = classes.Own + iota
	// expired: the etcd lease of the session has ended.
	expired
)

// refusal is a kind of error.
type refusal struct {
	Err   error // of the package rpctypes, by whose text the error is known
	Class classes.Class
	Why   string
}

// refusals are the errors of etcd's API whose gRPC codes do not say their class, see byCode.
var refusals = []refusal{
	// The cluster.
	{rpctypes.ErrGRPCNoLeader, brief, "the members elect a leader"},
	{rpctypes.ErrGRPCNotLeader, brief, "the member is not the leader any more"},
	{rpctypes.ErrGRPCUnhealthy, brief, "too few members are up"},
	{rpctypes.ErrGRPCNotSupportedForLearner, brief, "the member is a learner: another one may answer"},
	{rpctypes.ErrGRPCAuthOldRevision, brief, "users or roles were changed since the token was given"},
	{rpctypes.ErrGRPCLeaderChanged, classes.Doubt, "the leader has changed while the member waited for it"},
	{rpctypes.ErrGRPCStopped, classes.Doubt, "the member stops"},
	{rpctypes.ErrGRPCTimeout, classes.Doubt, "the members have not agreed in time"},
	{rpctypes.ErrGRPCTimeoutDueToLeaderFail, classes.Doubt, "the leader has failed meanwhile"},
	{rpctypes.ErrGRPCTimeoutDueToConnectionLost, classes.Doubt, "the members have lost each other"},
	{rpctypes.ErrGRPCTimeoutWaitAppliedIndex, classes.Doubt, "the member lags behind"},
	{rpctypes.ErrGRPCCorrupt, classes.Moment, "the members have found out that their data differ"},

	// Logins.
	{rpctypes.ErrGRPCAuthFailed, classes.Connection, "the user or the password is not accepted"},
	{rpctypes.ErrGRPCUserEmpty, classes.Connection, "the cluster wants a user, and the client has none"},
	{rpctypes.ErrGRPCUserNotFound, classes.Connection, "there is no such user, or no longer"},
	{rpctypes.ErrGRPCAuthNotEnabled, classes.Connection, "the cluster has no users, and the client has one"},

	// The session.
	{rpctypes.ErrGRPCLeaseNotFound, expired, "the lease of the session has ended: another one is begun"},

	// The request itself.
	{rpctypes.ErrGRPCNotCapable, classes.Request, "not all members have this feature, by all versions of etcd"},
}

// byText are the classes of refusals by the texts of their errors.
var byText = func() map[string]classes.Class {
	m := make(map[string]classes.Class, len(refusals))
	for _, r := range refusals {
		m[rpctypes.ErrorDesc(r.Err)] = r.Class
	}
	return m
}()

// textRefusals are errors that are known by a part of their text: errors of gRPC, and errors that
// the member does not translate. The first row that fits decides.
var textRefusals = classes.Table{
	{"raft proposal dropped", brief, "the member has no leader to send the request to"},
	{"authentication handshake failed", classes.Connection, "a side does not accept the certificate of the other"},
	{"Error while dialing", classes.Unreached, "the client cannot connect to a member"},
	{"name resolver error", classes.Unreached, "the names of the members have no addresses"},
	{"trying to send message larger than max", classes.Request, "the request is larger than the client allows"},
	{"received message larger than max", classes.Unclear, "the answer is larger than the client allows"},
	{"message larger than max", classes.Request, "the request is larger than the server allows"},
}

// byCode are the classes of errors with other texts, by their gRPC codes. Proxies and later
// versions send such errors too.
var byCode = map[codes.Code]classes.Class{
	codes.Unauthenticated:    classes.Connection,
	codes.ResourceExhausted:  classes.Moment,
	codes.InvalidArgument:    classes.Request,
	codes.NotFound:           classes.Request,
	codes.AlreadyExists:      classes.Request,
	codes.PermissionDenied:   classes.Request,
	codes.FailedPrecondition: classes.Request,
	codes.OutOfRange:         classes.Request,
	codes.Unimplemented:      classes.Request,
}

// classOf returns the class of err.
func classOf(err error) classes.Class {
	text, code := "", codes.Unknown
	var etcd rpctypes.EtcdError
	var grpc interface{ GRPCStatus() *status.Status }
	switch {
	case err == nil:
		return classes.Unclear
	case errors.As(err, &etcd):
		text, code = etcd.Error(), etcd.Code()
	case errors.As(err, &grpc):
		text, code = grpc.GRPCStatus().Message(), grpc.GRPCStatus().Code()
	}
	if c, ok := byText[text]; ok {
		return c
	}
	if c, ok := textRefusals.Containing(text); ok {
		return c
	}
	if c, ok := byCode[code]; ok {
		return c
	}
	return classes.Unclear
}

// isRefusal reports whether err says that nothing was done. After any other error the outcome is
// unknown.
func isRefusal(err error) bool { return errors.Is(storeError(err), driver.ErrRefused) }

// lasting reports whether err says that nothing was done, and that a repetition at once has the
// same answer.
func lasting(err error) bool {
	c := classOf(err)
	return c != brief && c != classes.Unreached && isRefusal(err)
}

// storeError returns err as an error of a [driver.Store].
func storeError(err error) error {
	switch c := classOf(err); c {
	case brief:
		return classes.Moment.Mark(err)
	case expired:
		return errExpired
	default:
		return c.Mark(err)
	}
}
