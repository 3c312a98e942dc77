package gcslock

import "github.com/jucgo/locks/distributed/internal/classes"

// refusals are the error answers of Google Cloud Storage, by status and reason. The first row that
// fits counts.
var refusals = classes.Table{
	{"3xx", classes.Unclear, "a redirect is not followed: something other than Google may have sent it"},

	{"400 uploadBrokenConnection", classes.Doubt, "the connection ended within a write"},

	{"401", classes.Connection, "there is no token, or Google does not accept it"},

	{"403 rateLimitExceeded", classes.Moment, "too many requests"},
	{"403 userRateLimitExceeded", classes.Moment, "too many requests of this user"},
	{"403 dailyLimitExceeded", classes.Moment, "the quota of the day is used up"},
	{"403 quotaExceeded", classes.Moment, "a quota is used up"},

	{"407", classes.Connection, "a proxy wants a login"},
	{"408", classes.Doubt, "the server did not get the request in time"},
	{"409", classes.Stored, "another request changes the object"},
	{"412 orgPolicyConstraintFailed", classes.Request, "a policy of the organization forbids the request"},
	{"412", classes.Stored, "the object has another generation"},
	{"423", classes.Moment, "the bucket or the object is locked for the time of an operation"},
	{"425", classes.Moment, "the request came too early on a new connection"},
	{"429", classes.Moment, "more than about one write of an object a second, or too many requests"},
	{"499", classes.Doubt, "the connection ended before the answer"},
	{"4xx", classes.Request, "a right is missing, the bucket does not exist, or the server blames the request"},

	{"501", classes.Request, "the server does not have the function"},
	{"5xx", classes.Doubt, "the server has failed"},
}

// class returns the class of an answer.
func (e *refusal) class() classes.Class { return refusals.Answer(e.status, e.reason, e.message) }
