package s3lock

import (
	"fmt"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusals are the error answers of S3 and of stores with its interface, by their code. An answer
// with another code, or without a code, is found by its status, or by the status's first digit.
var refusals = classes.Table{
	// About the object.
	{"NoSuchKey", classes.Stored, "the object is not there"},
	{"PreconditionFailed", classes.Stored, "the object has another ETag"},
	{"ConditionalRequestConflict", classes.Stored, "another write is under way"},
	{"OperationAborted", classes.Stored, "another operation is under way"},
	{"412", classes.Stored, "the object has another ETag"},

	// The login. Keys and tokens are replaced while programs run.
	{"ExpiredToken", classes.Connection, "the token of the session has expired"},
	{"ExpiredTokenException", classes.Connection, "the same, by other services"},
	{"TokenRefreshRequired", classes.Connection, "the token has to be renewed"},
	{"InvalidToken", classes.Connection, "the token is not accepted"},
	{"InvalidAccessKeyId", classes.Connection, "the key is not known, or not any more"},
	{"InvalidClientTokenId", classes.Connection, "the same, by other services"},
	{"UnrecognizedClientException", classes.Connection, "the same, by other services"},
	{"SignatureDoesNotMatch", classes.Connection, "the secret is another one"},
	{"InvalidSignatureException", classes.Connection, "the same, by other services"},
	{"RequestTimeTooSkewed", classes.Connection, "one of the two clocks is wrong"},
	{"RequestExpired", classes.Connection, "the signature is too old"},
	{"InvalidSecurity", classes.Connection, "the login is not accepted"},
	{"AuthFailure", classes.Connection, "the login is not accepted"},
	{"MissingSecurityHeader", classes.Connection, "the login is missing"},
	{"MissingAuthenticationToken", classes.Connection, "the login is missing"},
	{"401", classes.Connection, "the login is missing or not accepted"},
	{"407", classes.Connection, "a proxy wants a login"},

	// The moment.
	{"TemporaryRedirect", classes.Moment, "the name of a new bucket is not known everywhere yet"},
	{"Redirect", classes.Moment, "the same"},
	{"IncompleteBody", classes.Moment, "the store got a part of the request"},
	{"QuotaExceeded", classes.Moment, "the bucket is full"},
	{"InsufficientCapacity", classes.Moment, "the store is full"},
	{"XMinioStorageFull", classes.Moment, "the disks are full"},
	{"XMinioAdminBucketQuotaExceeded", classes.Moment, "the bucket is full"},
	{"307", classes.Moment, "a redirect, which is not followed"},
	{"425", classes.Moment, "the request came too early on a new connection"},
	{"507", classes.Moment, "the store is full"},

	// The moment, and the write may have been carried out.
	{"SlowDown", classes.Doubt, "too many requests, or too few disks answer"},
	{"SlowDownRead", classes.Doubt, "too few disks answer"},
	{"SlowDownWrite", classes.Doubt, "too few disks have written it"},
	{"ServiceUnavailable", classes.Doubt, "the store is overloaded or starting"},
	{"Busy", classes.Doubt, "the store is overloaded"},
	{"InternalError", classes.Doubt, "the store has failed, and asks for a repetition"},
	{"InternalFailure", classes.Doubt, "the same, by other services"},
	{"RequestTimeout", classes.Doubt, "the store did not get the request in time"},
	{"RequestTimeoutException", classes.Doubt, "the same, by other services"},
	{"Throttling", classes.Doubt, "too many requests"},
	{"ThrottlingException", classes.Doubt, "too many requests"},
	{"RequestLimitExceeded", classes.Doubt, "too many requests"},
	{"TooManyRequests", classes.Doubt, "too many requests"},
	{"408", classes.Doubt, "the store did not get the request in time"},
	{"429", classes.Doubt, "too many requests"},
	{"499", classes.Doubt, "the connection ended before the answer"},
	{"5xx", classes.Doubt, "the store or a proxy has failed"},

	// The request.
	{"AccessDenied", classes.Request, "a right is missing, or a lock of the object forbids it"},
	{"AccountProblem", classes.Request, "the account is disabled"},
	{"AllAccessDisabled", classes.Request, "the bucket is disabled"},
	{"NotSignedUp", classes.Request, "the account may not use S3"},
	{"OptInRequired", classes.Request, "the account has not enabled the region"},
	{"NoSuchBucket", classes.Request, "the bucket does not exist"},
	{"InvalidBucketName", classes.Request, "no bucket has such a name"},
	{"InvalidBucketState", classes.Request, "the state of the bucket forbids it"},
	{"InvalidObjectState", classes.Request, "the object is in an archive"},
	{"PermanentRedirect", classes.Request, "the bucket is in another region"},
	{"AuthorizationHeaderMalformed", classes.Request, "the signature is for another region"},
	{"IllegalLocationConstraintException", classes.Request, "the bucket is in another region"},
	{"NotImplemented", classes.Request, "the store has no conditional writes"},
	{"MethodNotAllowed", classes.Request, "the store forbids the method"},
	{"InvalidRequest", classes.Request, "the store does not accept the request"},
	{"InvalidArgument", classes.Request, "the store does not accept an argument"},
	{"MalformedXML", classes.Request, "the store does not understand the request"},
	{"BadDigest", classes.Request, "the data have another hash"},
	{"InvalidDigest", classes.Request, "the hash is none"},
	{"XAmzContentSHA256Mismatch", classes.Request, "the data have another hash"},
	{"EntityTooLarge", classes.Request, "the object is too large"},
	{"EntityTooSmall", classes.Request, "the object is too small"},
	{"KeyTooLongError", classes.Request, "the key is too long"},
	{"MissingContentLength", classes.Request, "the request has no length"},
	{"MetadataTooLarge", classes.Request, "the headers are too large"},
	{"KMS.DisabledException", classes.Request, "the key of the encryption is disabled"},
	{"KMS.NotFoundException", classes.Request, "the key of the encryption is not there"},
	{"KMS.InvalidStateException", classes.Request, "the key of the encryption is about to be deleted"},
	{"301", classes.Request, "the bucket is in another region"},
	{"501", classes.Request, "the store has no conditional writes"},
	{"4xx", classes.Request, "the store blames the request"},

	{"3xx", classes.Unclear, "something other than a store may have sent the redirect"},
}

// classOf returns what an answer refuses.
func classOf(code string, status int) classes.Class {
	for _, key := range []string{code, fmt.Sprint(status), fmt.Sprint(status/100, "xx")} {
		if c, ok := refusals.Class(key); ok {
			return c
		}
	}
	return classes.Unclear
}
