package dynamolock

import "github.com/jucgo/locks/distributed/internal/classes"

// refusals are the error answers of DynamoDB, by their code. An answer with another code, or
// without a code, is found by its status, or by the status's first digit.
var refusals = classes.Table{
	// About the row.
	{"ConditionalCheckFailedException", classes.Stored, "the row has another version"},

	// The login. Keys and tokens are replaced while programs run.
	{"ExpiredTokenException", classes.Connection, "the token of the session has expired"},
	{"ExpiredToken", classes.Connection, "the same, by other services"},
	{"UnrecognizedClientException", classes.Connection, "the key or the token is not known, or not any more"},
	{"InvalidClientTokenId", classes.Connection, "the same, by other services"},
	{"InvalidSignatureException", classes.Connection, "the secret is another one, or one of the clocks is wrong"},
	{"SignatureDoesNotMatch", classes.Connection, "the same, by other services"},
	{"IncompleteSignatureException", classes.Connection, "a part of the signature is missing"},
	{"IncompleteSignature", classes.Connection, "the same, by other services"},
	{"MissingAuthenticationTokenException", classes.Connection, "the login is missing"},
	{"MissingAuthenticationToken", classes.Connection, "the same, by other services"},
	{"RequestExpired", classes.Connection, "the signature is too old"},
	{"RequestTimeTooSkewed", classes.Connection, "a clock is wrong until it is set; an answer with a time corrects the client, see MarkAmazon"},
	{"AuthFailure", classes.Connection, "the login is not accepted"},
	{"NotAuthorized", classes.Connection, "the login is not accepted"},
	{"401", classes.Connection, "the login is missing or not accepted"},
	{"407", classes.Connection, "a proxy wants a login"},

	// The moment. DynamoDB compares and throttles before it writes.
	{"ProvisionedThroughputExceededException", classes.Moment, "the table has no capacity to spare"},
	{"ThrottlingException", classes.Moment, "too many requests"},
	{"ThrottledException", classes.Moment, "too many requests"},
	{"Throttling", classes.Moment, "too many requests"},
	{"RequestThrottled", classes.Moment, "too many requests"},
	{"RequestThrottledException", classes.Moment, "too many requests"},
	{"RequestLimitExceeded", classes.Moment, "too many requests of the account"},
	{"TooManyRequestsException", classes.Moment, "too many requests"},
	{"LimitExceededException", classes.Moment, "too many changes of tables"},
	{"BandwidthLimitExceeded", classes.Moment, "too many bytes"},
	{"SlowDown", classes.Moment, "too many requests"},
	{"PriorRequestNotComplete", classes.Moment, "an earlier request is under way"},
	{"TransactionConflictException", classes.Moment, "a transaction has the row at the moment"},
	{"TransactionInProgressException", classes.Moment, "a transaction is under way"},
	{"ReplicatedWriteConflictException", classes.Moment, "another region changes the row at the moment"},
	{"ResourceInUseException", classes.Moment, "the table is being changed"},
	{"InvalidEndpointException", classes.Moment, "the library asks for another address"},

	// The moment, and the write may have been carried out.
	{"RequestTimeout", classes.Doubt, "the server did not get the request in time"},
	{"RequestTimeoutException", classes.Doubt, "the same, by other services"},
	{"RequestAbortedException", classes.Doubt, "the connection ended before the answer"},
	{"408", classes.Doubt, "the server did not get the request in time"},
	{"429", classes.Doubt, "a proxy has too many requests"},
	{"5xx", classes.Doubt, "the server or a proxy has failed"},

	// The request, such as AccessDeniedException and ResourceNotFoundException.
	{"4xx with a code", classes.Request, "the request or the table is refused, or a right is missing"},

	{"4xx", classes.Unclear, "a proxy refuses a request, and says nothing about the server"},
	{"3xx", classes.Unclear, "something other than DynamoDB may have sent the redirect"},
}

// classOf returns what an answer refuses.
func classOf(code string, status int) classes.Class {
	if _, listed := refusals.Class(code); code != "" && !listed && status >= 400 && status < 500 {
		code = "4xx with a code"
	}
	return refusals.Named(code, status)
}
