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
		Life: stores("watched"), Seed: 14208639824990121420,
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
		Life: stores("queued"), Seed: 2393650339180867202,
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
	{
		Name: "a renewal that finds no hold is ignored", File: "distributed/lease/renewal.go",
		Old:  "			g.noteDenial()\n			s.lose(g, nil)\n",
		New:  "",
		Life: stores("queued"), Seed: 13282658923768411091,
		Rule: "a holder knows soon of a loss that the store tells",
	},
	{
		Name: "a hold is renewed too late", File: "distributed/lease/renewal.go",
		Old:  "g.ttl*2/3",
		New:  "g.ttl/30",
		Life: stores("watched"), Seed: 9995483326914376746,
		Rule: "a hold lasts while nothing fails",
	},
	{
		Name: "a shorter extension does not end a hold sooner", File: "distributed/lease/grant.go",
		Old:  "until.Before(g.until) {\n		g.until = until",
		New:  "false {\n		g.until = until",
		Life: stores("watched"), Seed: 204084064032008026,
		Rule: "a hold does not last longer here than in the store",
	},
	{
		Name: "a renewed lease begins with the answer", File: "distributed/lease/grant.go",
		Old:  "if until := g.endOf(p, p.least); until.After",
		New:  "if until := now.Add(p.least - g.s.marginOf(p.least)); until.After",
		Life: stores("watched"), Seed: 1578880359770870047,
		Rule: "a hold does not last longer here than in the store",
	},
	{
		Name: "a release that finds no hold tells of no loss", File: "distributed/lease/release.go",
		Old:  "return 0, locks.ErrLost\n",
		New:  "return 0, nil\n",
		Life: stores("queued"), Seed: 3969043471524152158,
		Rule: "an unlock tells of a loss",
	},
	{
		Name: "a waiter does not ask once more when its watch has begun", File: "distributed/lease/acquire.go",
		Old:  "if !r.listening {",
		New:  "if false {",
		Life: stores("watched"), Seed: 10005502104932241367,
		Rule: "a waiter asks once more when its watch has begun",
	},
	{
		Name: "a waiter ignores when the lease of the holder ends", File: "distributed/lease/acquire.go",
		Old:  "if r.refused > 0 {",
		New:  "if false {",
		Life: stores("watched"), Seed: 5395792735189854149,
		Rule: "a waiter asks when the lease of the holder ends",
	},
	{
		Name: "permits are not given back", File: "distributed/lease/semaphore.go",
		Old:  "	err := q.unlock(p.owner)\n",
		New:  "	var err error\n",
		Life: stores("permits"), Seed: 9671450821284571645,
		Rule: "a hold that was given back is over for its owner",
	},
	{
		Name: "a leader that resigns leads on", File: "distributed/leader/leader.go",
		Old:  "e.resign = func() { cancel(ErrResigned) }",
		New:  "e.resign = func() {}",
		Life: leaders("watched"), Seed: 1402286836482051065,
		Rule: "a hold that was given back is over for its owner",
	},
	{
		Name: "Run ends with a loss that its release has found", File: "distributed/leader/leader.go",
		Old:  "case !told && !lost:",
		New:  "case !told:",
		Life: leaders("watched"), Seed: 12940467613793377312,
		Rule: "Run ends with a loss",
	},
	{
		Name: "the function of a leader runs although the leadership has ended", File: "distributed/leader/leader.go",
		Old:  "if e.gained(leading); leading.Err() == nil {",
		New:  "if e.gained(leading); true {",
		Life: leaders("watched"), Seed: 6396421982814125143,
		Rule: "the function runs although its leadership has ended",
	},
	{
		Name: "a lock that comes while the client closes is not given back", File: "distributed/lease/acquire.go",
		Old:  "			c.releaser.sweep(&sweeping{id: g.id, until: g.over()})\n",
		New:  "",
		Life: stores("watched"), Seed: 15554998269384748505,
		Rule: closedFree,
	},
	{
		Name: "a lock that comes too late is not given back", File: "distributed/lease/acquire.go",
		Old:  "			a.sweep(sent.Add(ttl), nil, false)\n",
		New:  "",
		Life: stores("watched"), Seed: 8152601838348314710,
		Rule: closedFree,
	},
	{
		Name: "a lease begins with the answer", File: "distributed/lease/acquire.go",
		Old:  "until: sent.Add(ttl - c.marginOf(ttl)),\n		index",
		New:  "until: c.now().Add(ttl - c.marginOf(ttl)),\n		index",
		Life: stores("watched"), Seed: 12672474392996099513,
		Rule: "a hold does not last longer here than in the store",
	},
	{
		Name: "a late request for a place shortens no extension", File: "distributed/lease/acquire.go",
		Old:  "			g.unknown, g.late = ttl, c.now().Add(latest)\n",
		New:  "",
		Life: stores("queued"), Seed: 3621920318389626302,
		Rule: "a hold does not last longer here than in the store",
	},
	{
		Name: "a lock is kept that is given to a waiter that has left", File: "distributed/lease/undo.go",
		Old:  "		a.c.releaser.release(r.g)\n",
		New:  "",
		Life: stores("watched"), Seed: 12453547543441215699,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "a waiter that leaves forgets an earlier request", File: "distributed/lease/undo.go",
		Old:  "		a.sweep(a.doubt, nil, a.several)\n",
		New:  "",
		Life: stores("queued"), Seed: 344281786696093059,
		Rule: closedFree,
	},
	{
		Name: "a release without an answer is not repeated", File: "distributed/lease/release.go",
		Old:  "	r.sweep(&sweeping{id: g.id, until: g.atMost()})\n	return lossBy(err)",
		New:  "	return lossBy(err)",
		Life: stores("watched"), Seed: 14195657577130229409,
		Rule: "a lost hold is given back",
	},
	{
		Name: "a renewal that comes after a loss keeps the lock", File: "distributed/lease/renewal.go",
		Old:  "		s.sweep(&sweeping{id: g.id, until: s.now().Add(p.d)})\n",
		New:  "",
		Life: stores("watched"), Seed: 570645158304675718,
		Rule: "a lost hold is given back",
	},
	{
		Name: "a renewal that fails is not repeated soon", File: "distributed/lease/renewal.go",
		Old:  "		s.retry(again, ttl)\n",
		New:  "		_ = again\n",
		Life: stores("watched"), Seed: 5207169075834673452,
		Rule: "a renewal that fails is repeated soon",
	},
	{
		Name: "a session is not told of a loss", File: "distributed/lease/renewal.go",
		Old:  "		s.session.Lost(g.id)\n",
		New:  "",
		Life: stores("tied"), Seed: 1308644816765156481,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "a loss that the store tells is ignored", File: "distributed/lease/renewal.go",
		Old:  "		g.noteDenial()\n		s.lose(g, cause)\n",
		New:  "",
		Life: stores("tied"), Seed: 4251575197225382681,
		Rule: "a holder knows soon of a loss that the store tells",
	},
	{
		Name: "a shorter extension under way does not shorten a renewal", File: "distributed/lease/grant.go",
		Old:  "		other.least = min(other.least, p.d)\n",
		New:  "",
		Life: stores("watched"), Seed: 13030354634461568728,
		Rule: "a hold does not last longer here than in the store",
	},
	{
		Name: "a lost hold is swept until its own end", File: "distributed/lease/release.go",
		Old:  "	until := g.atMost()\n",
		New:  "	until := g.over()\n",
		Life: stores("watched"), Seed: 6043394367359613107,
		Rule: "a lost hold is given back",
	},
	{
		Name: "a release is left to the background until the end of its hold", File: "distributed/lease/release.go",
		Old:  "until: g.atMost()})",
		New:  "until: g.over()})",
		Life: stores("watched"), Seed: 16821595404470277557,
		Rule: "a client that is closed without an error has no lock",
	},
	{
		Name: "a request without an answer prolongs nothing", File: "distributed/lease/grant.go",
		Old:  "	longest := g.longest\n	for",
		New:  "	var longest time.Duration\n	for",
		Life: stores("watched"), Seed: 8579382678337410091,
		Rule: "a lost hold is given back",
	},
	{
		Name: "a lock with a short rest goes to the next owner", File: "distributed/lease/handoff.go",
		Old:  " || g.over().Sub(now) < g.ttl/2",
		New:  "",
		Life: multi("ordered", "watched"), Seed: 4950171911726442672,
		Rule: "a hold lasts while nothing fails",
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
