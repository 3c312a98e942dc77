package leasetest

// faultChecks use locks while requests and networks fail.
var faultChecks = []check{}
