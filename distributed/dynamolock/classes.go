package dynamolock

import (
	"fmt"

	"github.com/jucgo/locks/distributed/internal/classes"
)

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
	{"RequestTimeTooSkewed", classes.Connection, "one of the clocks is wrong"},
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
	{"InternalServerError", classes.Doubt, "the server has failed"},
	{"InternalServerErrorException", classes.Doubt, "the same, by other servers"},
	{"InternalFailure", classes.Doubt, "the same, by other services"},
	{"ServiceUnavailable", classes.Doubt, "the server is overloaded or starting"},
	{"ServiceUnavailableException", classes.Doubt, "the same, by other servers"},
	{"RequestTimeout", classes.Doubt, "the server did not get the request in time"},
	{"RequestTimeoutException", classes.Doubt, "the same, by other services"},
	{"RequestAbortedException", classes.Doubt, "the connection ended before the answer"},
	{"408", classes.Doubt, "the server did not get the request in time"},
	{"429", classes.Doubt, "a proxy has too many requests"},
	{"5xx", classes.Doubt, "the server or a proxy has failed"},

	// The request.
	{"AccessDeniedException", classes.Request, "a right is missing"},
	{"OptInRequired", classes.Request, "the account has not enabled the region"},
	{"SubscriptionRequiredException", classes.Request, "the account may not use DynamoDB"},
	{"ResourceNotFoundException", classes.Request, "the table does not exist, or is not ready"},
	{"TableNotFoundException", classes.Request, "the table does not exist"},
	{"ValidationException", classes.Request, "the table has another key"},
	{"ValidationError", classes.Request, "the same, by other services"},
	{"ItemCollectionSizeLimitExceededException", classes.Request, "the rows of a key in an index are too many"},
	{"TransactionCanceledException", classes.Request, "a transaction was refused"},
	{"IdempotentParameterMismatchException", classes.Request, "a transaction was sent before with other data"},
	{"InaccessibleEncryptionCredentialsException", classes.Request, "the key of the encryption cannot be used"},
	{"SerializationException", classes.Request, "the server does not understand the request"},
	{"MalformedHttpRequestException", classes.Request, "the server does not understand the request"},
	{"UnknownOperationException", classes.Request, "the server does not know the operation"},
	{"RequestEntityTooLargeException", classes.Request, "the request is too large"},
	{"PolicyNotFoundException", classes.Request, "the table has no such policy"},
	{"4xx with a code", classes.Request, "another code of DynamoDB, which blames the request"},

	{"4xx", classes.Unclear, "a proxy refuses a request, and says nothing about the server"},
	{"3xx", classes.Unclear, "something other than DynamoDB may have sent the redirect"},
}

// classOf returns what an answer refuses.
func classOf(code string, status int) classes.Class {
	keys := []string{code, fmt.Sprint(status), fmt.Sprint(status/100, "xx")}
	if code != "" && status >= 400 && status < 500 {
		keys = []string{code, "4xx with a code"}
	}
	for _, key := range keys {
		if c, ok := refusals.Class(key); ok {
			return c
		}
	}
	return classes.Unclear
}
