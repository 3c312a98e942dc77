//go:build race

package effort

// share is half of the share without the race detector, under which a search takes four times as
// long. A run with the race detector looks for races, and finds them in the first lives.
const share = 8
