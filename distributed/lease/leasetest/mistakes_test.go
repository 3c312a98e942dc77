package leasetest

import (
	"testing"

	"github.com/jucgo/locks/internal/test/mistake"
)

// mistakes are possible mistakes of package lease and of the packages that build on it, one each.
var mistakes = []mistake.Mistake{
	{
		Name: "Extend says nil after a release", File: "distributed/lease/hold.go",
		Old:  "case !h.g.noteAnswer(p) || h.released.Load():",
		New:  "case !h.g.noteAnswer(p):",
		Life: stores("watched"), Seed: 15136505265680566642,
		Rule: "a hold that was given back is over for its owner",
	},
	{
		Name: "a partial failure of a renewal loses the holds", File: "distributed/lease/renewal.go",
		Old:  "		case !ok[i] && failed: // unknown\n",
		New:  "",
		Life: stores("permits"), Seed: 6039686379169489725,
		Rule: "a hold that is lost before its time was lost in the store",
	},
	{
		Name: "a late request is not swept", File: "distributed/lease/acquire.go",
		Old:  "			if a.queue == nil {\n				a.sweep(r.doubt, nil, false)\n			}\n			return r\n",
		New:  "			return r\n",
		Life: stores("watched"), Seed: 7910323219216466424,
		Rule: "what a late request takes is given back",
	},
	{
		Name: "a grant is kept that comes while the client closes", File: "distributed/lease/acquire.go",
		Old:  "late := g != nil && c.open.Err() != nil",
		New:  "late := false",
		Life: stores("watched"), Seed: 8061150522148204742,
		Rule: "a client that is closed gives no lock",
	},
	{
		Name: "the name of a doubtful request is used again", File: "distributed/lease/acquire.go",
		Old:  "if a.queue == nil && !r.doubt.IsZero() {",
		New:  "if false {",
		Life: stores("watched"), Seed: 14073248167299904744,
		Rule: "no two holds are valid at once",
	},
	{
		Name: "the doubt of an earlier queued request ends with the release", File: "distributed/lease/release.go",
		Old:  "	if !g.doubt.IsZero() {",
		New:  "	if false {",
		Life: stores("queued"), Seed: 11032761739447035232,
		Rule: "what a late request takes is given back",
	},
	{
		Name: "a Multi keeps the members that it has after a try that fails", File: "multi.go",
		Old:  "		if len(taken) < len(m.members) {\n",
		New:  "		if err != nil {\n",
		Life: multi("tried", "watched"), Seed: 18002039042140204464,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "a Multi keeps the members that it has after an error", File: "multi.go",
		Old:  "		if taken < len(m.members) {\n			err = joined.Errors(err, m.rollBack(ctx, o, m.members[:taken]))\n		}\n	}()\n	for i := range m.members {\n		each := &m.members[i]\n		if err := each.lock.LockContext",
		New:  "	}()\n	for i := range m.members {\n		each := &m.members[i]\n		if err := each.lock.LockContext",
		Life: multi("ordered", "watched"), Seed: 14848727996547872920,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "the hold of a Multi is lost with its first member only", File: "multi.go",
		Old:  "	for _, each := range h.members {\n		if err := each.Err(); err != nil {\n",
		New:  "	for _, each := range h.members[:1] {\n		if err := each.Err(); err != nil {\n",
		Life: multi("ordered", "watched"), Seed: 14848727996547872920,
		Rule: "a hold of several locks is lost with each of them",
	},
	{
		Name: "the hold of a Multi tells a loss of its last member only", File: "multi.go",
		Old:  "	for _, lost := range channels {\n",
		New:  "	for _, lost := range channels[len(channels)-1:] {\n",
		Life: multi("ordered", "watched"), Seed: 11662208533807299784,
		Rule: "a lost hold has told its holder",
	},
	{
		Name: "the function of a leader runs on after a loss", File: "do.go",
		Old:  "			cancel(ErrLost)\n",
		New:  "",
		Life: leaders("watched"), Seed: 11473668291195036402,
		Rule: "no two holds are valid at once",
	},
	{
		Name: "a leadership that was lost has ended without a reason", File: "distributed/leader/leader.go",
		Old:  "	t.err = joined.Errors(t.err, err)\n",
		New:  "",
		Life: leaders("watched"), Seed: 1,
		Rule: "a lost leadership has ended for another reason",
	},
}

// leaders is the life of leaders by a kind of store.
func leaders(kind string) string { return "^TestLivesOfLeaders$/^" + kind + "$" }

// multi is the life of Multis over two stores of a kind.
func multi(how, kind string) string {
	return "^TestLivesOfMultisOverTwoStores$/^" + how + "$/^" + kind + "$"
}

// stores is the life of a kind of store.
func stores(kind string) string { return "^TestLivesOfEachKindOfStore$/^" + kind + "$" }

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}
