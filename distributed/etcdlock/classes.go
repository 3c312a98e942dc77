package etcdlock

import (
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// class says which thing an error refuses, see [driver.ErrRefused].
type class int

const (
	// unknown: the request got no answer, and may have been carried out.
	unknown class = iota
	// ended: a member stops, or has waited in vain for the others. The request may have been
	// carried out.
	ended
	// request: this request. A repetition has the same answer.
	request
	// login: the token, the user or the certificate.
	login
	// moment: any such request, until an administrator or the load lets it pass.
	moment
	// brief: any such request, until an election or the like is over.
	brief
	// unreached: no connection was made.
	unreached
	// expired: the etcd lease of the session has ended.
	expired
)

// refusal is a kind of error.
type refusal struct {
	Err   error // of the package rpctypes, by whose text the error is known
	Class class
	Why   string
}

// refusals are the errors of etcd's API.
var refusals = []refusal{
	// The cluster.
	{rpctypes.ErrGRPCNoLeader, brief, "the members elect a leader"},
	{rpctypes.ErrGRPCNotLeader, brief, "the member is not the leader any more"},
	{rpctypes.ErrGRPCUnhealthy, brief, "too few members are up"},
	{rpctypes.ErrGRPCNotSupportedForLearner, brief, "the member is a learner: another one may answer"},
	{rpctypes.ErrGRPCAuthOldRevision, brief, "users or roles were changed since the token was given"},
	{rpctypes.ErrGRPCLeaderChanged, ended, "the leader has changed while the member waited for it"},
	{rpctypes.ErrGRPCStopped, ended, "the member stops"},
	{rpctypes.ErrGRPCTimeout, ended, "the members have not agreed in time"},
	{rpctypes.ErrGRPCTimeoutDueToLeaderFail, ended, "the leader has failed meanwhile"},
	{rpctypes.ErrGRPCTimeoutDueToConnectionLost, ended, "the members have lost each other"},
	{rpctypes.ErrGRPCTimeoutWaitAppliedIndex, ended, "the member lags behind"},
	{rpctypes.ErrGRPCNoSpace, moment, "the quota is used up: what exceeds it is deleted again"},
	{rpctypes.ErrGRPCRequestTooManyRequests, moment, "the member has too many requests to do"},
	{rpctypes.ErrGRPCCorrupt, moment, "the members have found out that their data differ"},
	{rpctypes.ErrGRPCCanceled, unknown, "the member has given the request up"},
	{rpctypes.ErrGRPCDeadlineExceeded, unknown, "the time of the request is over"},
	{rpctypes.ErrGRPCWatchCanceled, unknown, "a watch has ended, and is begun anew"},

	// Logins.
	{rpctypes.ErrGRPCInvalidAuthToken, login, "the token has expired, or a member does not know it"},
	{rpctypes.ErrGRPCAuthFailed, login, "the user or the password is not accepted"},
	{rpctypes.ErrGRPCUserEmpty, login, "the cluster wants a user, and the client has none"},
	{rpctypes.ErrGRPCUserNotFound, login, "there is no such user, or no longer"},
	{rpctypes.ErrGRPCAuthNotEnabled, login, "the cluster has no users, and the client has one"},

	// The session.
	{rpctypes.ErrGRPCLeaseNotFound, expired, "the lease of the session has ended: another one is begun"},

	// The request itself.
	{rpctypes.ErrGRPCPermissionDenied, request, "the user lacks a permission"},
	{rpctypes.ErrGRPCEmptyKey, request, "the key is empty"},
	{rpctypes.ErrGRPCKeyNotFound, request, "there is no such key"},
	{rpctypes.ErrGRPCValueProvided, request, "a value is given, and is not to be changed"},
	{rpctypes.ErrGRPCLeaseProvided, request, "a lease is given, and is not to be changed"},
	{rpctypes.ErrGRPCTooManyOps, request, "the server allows fewer operations, see max-txn-ops"},
	{rpctypes.ErrGRPCDuplicateKey, request, "a transaction puts a key twice"},
	{rpctypes.ErrGRPCInvalidClientAPIVersion, request, "the client's version is none"},
	{rpctypes.ErrGRPCInvalidSortOption, request, "the order is none"},
	{rpctypes.ErrGRPCCompacted, request, "the revision was compacted: no request here names one"},
	{rpctypes.ErrGRPCFutureRev, request, "the revision is to come: no request here names one"},
	{rpctypes.ErrGRPCRequestTooLarge, request, "the request is too large"},
	{rpctypes.ErrGRPCLeaseExist, request, "the lease exists"},
	{rpctypes.ErrGRPCLeaseTTLTooLarge, request, "the lease is too long"},
	{rpctypes.ErrGRPCNotCapable, request, "not all members have this feature"},
	{rpctypes.ErrGRPCInvalidAuthMgmt, request, "the client may not manage users"},
	{rpctypes.ErrGRPCClusterIDMismatch, request, "the member is of another cluster"},

	// Requests that are not made here.
	{rpctypes.ErrGRPCMemberExist, request, "of the members"},
	{rpctypes.ErrGRPCPeerURLExist, request, "of the members"},
	{rpctypes.ErrGRPCMemberNotEnoughStarted, request, "of the members"},
	{rpctypes.ErrGRPCMemberBadURLs, request, "of the members"},
	{rpctypes.ErrGRPCMemberNotFound, request, "of the members"},
	{rpctypes.ErrGRPCMemberNotLearner, request, "of the members"},
	{rpctypes.ErrGRPCLearnerNotReady, request, "of the members"},
	{rpctypes.ErrGRPCTooManyLearners, request, "of the members"},
	{rpctypes.ErrGRPCBadLeaderTransferee, request, "of the members"},
	{rpctypes.ErrGRPCRootUserNotExist, request, "of users and roles"},
	{rpctypes.ErrGRPCRootRoleNotExist, request, "of users and roles"},
	{rpctypes.ErrGRPCUserAlreadyExist, request, "of users and roles"},
	{rpctypes.ErrGRPCRoleAlreadyExist, request, "of users and roles"},
	{rpctypes.ErrGRPCRoleNotFound, request, "of users and roles"},
	{rpctypes.ErrGRPCRoleEmpty, request, "of users and roles"},
	{rpctypes.ErrGRPCRoleNotGranted, request, "of users and roles"},
	{rpctypes.ErrGRPCPermissionNotGiven, request, "of users and roles"},
	{rpctypes.ErrGRPCPermissionNotGranted, request, "of users and roles"},
	{rpctypes.ErrGRPCWrongDowngradeVersionFormat, request, "of a downgrade"},
	{rpctypes.ErrGRPCInvalidDowngradeTargetVersion, request, "of a downgrade"},
	{rpctypes.ErrGRPCClusterVersionUnavailable, request, "of a downgrade"},
	{rpctypes.ErrGRPCDowngradeInProcess, request, "of a downgrade"},
	{rpctypes.ErrGRPCNoInflightDowngrade, request, "of a downgrade"},
}

// byText are the classes of refusals by the texts of their errors.
var byText = func() map[string]class {
	m := make(map[string]class, len(refusals))
	for _, r := range refusals {
		m[rpctypes.ErrorDesc(r.Err)] = r.Class
	}
	return m
}()

// textRefusal is a kind of error that a part of its text identifies: an error of gRPC, or an
// error that the member does not translate.
type textRefusal struct {
	Text  string
	Class class
	Why   string
}

// textRefusals are errors that are known by a part of their text. The first one that fits decides.
var textRefusals = []textRefusal{
	{"raft proposal dropped", brief, "the member has no leader to send the request to"},
	{"authentication handshake failed", login, "one side does not accept the certificate of the other one"},
	{"Error while dialing", unreached, "the client cannot connect to a member"},
	{"name resolver error", unreached, "the names of the members have no addresses"},
	{"trying to send message larger than max", request, "the request is larger than the client allows"},
	{"received message larger than max", unknown, "the answer is larger than the client allows"},
	{"message larger than max", request, "the request is larger than the server allows"},
}

// byCode are the classes of errors with other texts, by their gRPC codes. Such errors come from
// proxies and later versions.
var byCode = map[codes.Code]class{
	codes.Unauthenticated:    login,
	codes.ResourceExhausted:  moment,
	codes.InvalidArgument:    request,
	codes.NotFound:           request,
	codes.AlreadyExists:      request,
	codes.PermissionDenied:   request,
	codes.FailedPrecondition: request,
	codes.OutOfRange:         request,
	codes.Unimplemented:      request,
}

// classOf returns the class of err.
func classOf(err error) class {
	text, code := "", codes.Unknown
	var etcd rpctypes.EtcdError
	var grpc interface{ GRPCStatus() *status.Status }
	switch {
	case err == nil:
		return unknown
	case errors.As(err, &etcd):
		text, code = etcd.Error(), etcd.Code()
	case errors.As(err, &grpc):
		text, code = grpc.GRPCStatus().Message(), grpc.GRPCStatus().Code()
	}
	if c, ok := byText[text]; ok {
		return c
	}
	for _, r := range textRefusals {
		if strings.Contains(text, r.Text) {
			return r.Class
		}
	}
	return byCode[code]
}

// isRefusal reports whether err says that nothing was done. After any other error the outcome is
// unknown.
func isRefusal(err error) bool {
	switch classOf(err) {
	case request, login, moment, brief, unreached, expired:
		return true
	}
	return errors.Is(err, driver.ErrRefused)
}

// lasting reports whether err says that nothing was done, and that a repetition at once has the
// same answer.
func lasting(err error) bool {
	switch classOf(err) {
	case request, login, moment, expired:
		return true
	case brief, unreached:
		return false
	}
	return errors.Is(err, driver.ErrRefused)
}

// storeError returns err as an error of a [driver.Store].
func storeError(err error) error {
	switch classOf(err) {
	case request:
		return driver.Mark(err, driver.ErrRefused)
	case login:
		return driver.Mark(err, driver.ErrRefused, driver.ErrLogin)
	case moment, brief:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	case unreached:
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	case ended:
		return driver.Mark(err, driver.ErrUnavailable)
	case expired:
		return errExpired
	}
	return err
}
