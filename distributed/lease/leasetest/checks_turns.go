package leasetest

// turnChecks use locks of several clients at once.
var turnChecks = []check{}
