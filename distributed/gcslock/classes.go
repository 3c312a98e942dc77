package gcslock

import (
	"fmt"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusals are the error answers of Google Cloud Storage, by their status and reason. The first row
// that fits counts: the status with the reason, the status alone, or the status's first digit.
var refusals = classes.Table{
	{"3xx", classes.Unclear, "a redirect is not followed: something other than Google may have sent it"},

	{"400", classes.Request, "an argument is wrong, or a key of the encryption is disabled"},
	{"400 uploadBrokenConnection", classes.Doubt, "the connection ended within a write"},

	{"401", classes.Connection, "there is no token, or Google does not accept it"},
	{"401 authError", classes.Connection, "the token has expired or was revoked"},
	{"401 required", classes.Connection, "the client sends no token"},
	{"401 lockedDomainExpired", classes.Connection, "the login has expired"},
	{"401 authenticationRequiredRequesterPays", classes.Connection, "the requester pays, and needs a login"},

	{"403", classes.Request, "a right is missing"},
	{"403 forbidden", classes.Request, "a right is missing"},
	{"403 insufficientPermissions", classes.Request, "the scope of the token does not permit the request"},
	{"403 accountDisabled", classes.Request, "the project or its billing is disabled"},
	{"403 accessNotConfigured", classes.Request, "the project has not enabled the interface"},
	{"403 countryBlocked", classes.Request, "Google does not serve the country"},
	{"403 sslRequired", classes.Request, "the address needs https"},
	{"403 objectUnderActiveHold", classes.Request, "the object is under a hold, and cannot be replaced"},
	{"403 retentionPolicyNotMet", classes.Request, "the retention of the bucket permits no replacement"},
	{"403 userProjectAccessDenied", classes.Request, "the right to use the project is missing"},
	{"403 userProjectAccountProblem", classes.Request, "the account of the project that pays has a problem"},
	{"403 rateLimitExceeded", classes.Moment, "too many requests"},
	{"403 userRateLimitExceeded", classes.Moment, "too many requests of this user"},
	{"403 dailyLimitExceeded", classes.Moment, "the quota of the day is used up"},
	{"403 quotaExceeded", classes.Moment, "a quota is used up"},

	{"404", classes.Request, "the bucket does not exist. Where it does, the object does not, which is no refusal"},
	{"405", classes.Request, "the server does not know the method"},
	{"407", classes.Connection, "a proxy wants a login"},
	{"408", classes.Doubt, "the server did not get the request in time"},
	{"409", classes.Stored, "another request changes the object"},
	{"410", classes.Request, "an upload is over"},
	{"411", classes.Request, "the request has no length"},
	{"412", classes.Stored, "the object has another generation"},
	{"412 orgPolicyConstraintFailed", classes.Request, "a policy of the organization forbids the request"},
	{"413", classes.Request, "the object is too large"},
	{"416", classes.Request, "the object is shorter"},
	{"423", classes.Moment, "the bucket or the object is locked for the time of an operation"},
	{"425", classes.Moment, "the request came too early on a new connection"},
	{"429", classes.Moment, "more than about one write of an object a second, or too many requests"},
	{"499", classes.Doubt, "the connection ended before the answer"},
	{"4xx", classes.Request, "the server blames the request"},

	{"500", classes.Doubt, "the server has failed"},
	{"501", classes.Request, "the server does not have the function"},
	{"502", classes.Doubt, "a proxy has lost the server"},
	{"503", classes.Doubt, "the server is overloaded or starting"},
	{"504", classes.Doubt, "a proxy has no answer in time"},
	{"5xx", classes.Doubt, "the server has failed"},
}

// class returns the class of an answer.
func (e *refusal) class() classes.Class {
	for _, code := range []string{
		fmt.Sprint(e.status, " ", e.reason), fmt.Sprint(e.status), fmt.Sprint(e.status/100, "xx"),
	} {
		if c, ok := refusals.Class(code); ok {
			return c
		}
	}
	return classes.Unclear
}
