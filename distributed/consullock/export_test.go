package consullock

// Refusals is the table of answers.
var Refusals = refusals
