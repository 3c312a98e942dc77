package s3lock

import "github.com/jucgo/locks/distributed/internal/classes"

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
	{"RequestTimeTooSkewed", classes.Connection, "a clock is wrong until it is set; an answer with a time corrects the client, see MarkAmazon"},
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

	// The request, such as AccessDenied, NoSuchBucket and NotImplemented.
	{"301", classes.Request, "the bucket is in another region"},
	{"501", classes.Request, "the store has no conditional writes"},
	{"4xx", classes.Request, "the request, the bucket or the account is refused, or a right is missing"},

	{"3xx", classes.Unclear, "something other than a store may have sent the redirect"},
}

// classOf returns what an answer refuses.
func classOf(code string, status int) classes.Class { return refusals.Named(code, status) }
