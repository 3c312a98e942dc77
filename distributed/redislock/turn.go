package redislock

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// Who of ours waits for a plain or fenced lock has a place in a list beside it, named locks_waiting:{lock}. A release of ours takes
// the first one off, and says in its message whose turn it is, so that one process asks and not all. Redisson knows nothing of the
// list: its waiters hear of every release, and its releases wake all of ours.
//
// An element of the list is the number of a client, a colon, and the owner. The number is drawn by each client, from least to most. Two
// may have the same one.
//
//	message      from                               Redisson's waiters       ours
//	0            Redisson; ours if nobody waits     one in each process      all ask
//	1            an administrator                   all                      all ask
//	n zeros      ours: it is the turn of n          one in each process      n asks, others get ready to
//	             for Redisson's decoder, that is 0
//	else         nobody                             none                     none
//
// The list is a hint. The lock is whoever's its key says, and each of these only costs time, and not much:
//
//	what                                   what then
//	whose turn it is has died, or sleeps   nobody asks. So all others who heard the message do so after a while, unless they hear another: calm for
//	                                       the first in the list, twice that for the second, and so on
//	it hears of it too late                the lock is another's. It asks, and has the first place in the list again
//	it has given up                        it leaves the list, finds that it has no place any more, and calls the next one
//	it has got the lock already            it was not in the list any more: it left it with the script that gave it the lock
//	a request of one that has given up     nobody waits there under the number that is called: its client calls the next one
//	  arrives late, and gives it a place
//	the message is lost                    with the connection: when there is one again, all ask. Or by itself: who waits asks in turn in any case
//	a place is lost, or the list           who has none does not know. After patience without an answer it asks when it hears a message; and
//	                                       when nobody is in the list, a message says 0
//	the list is something else             nobody has a place, and all ask after each release
//	who has died stays in the list         until it is its turn, or for at most ttlWaiting
//
// No wake-up is missed: a waiter has its place, and its subscription, before the lock can be released by somebody who has not
// heard of either. The script that refuses the lock gives it the place; the subscription was active before that, or it asks again
// when it is. A release that comes after the place was given calls it, or somebody before it, or finds no list; in each case it is told.
const (
	least = 2 // 1 would be Redisson's 0
	most  = 256

	calm       = 25 * time.Millisecond
	slowest    = 20          // times calm: for how long at most others have precedence
	patience   = time.Second // for which one relies on others after each request
	ttlWaiting = time.Minute
)

// number is what calls the turns of a client.
type number struct {
	n   word
	arg any // for scripts
}

func drawn() *number {
	n := least + rand.IntN(most-least+1)
	return &number{word(n), strconv.Itoa(n)}
}

// How one asks that will wait, if not for the first time.
const (
	called = "called" // it is its turn: it is not in the list
	again  = "again"  // it may be in the list
)

// awaitAcquire is hashAcquire for one that will wait. It is refused with the time to live and its place in the list, which
// is 0 if it has none.
//
// KEYS lock, list [counter]; ARGV lease, owner, number [how]
var awaitAcquire = newScript(`
local lock, owner, how = KEYS[1], ARGV[2], ARGV[4]
local ttl = redis.call('pttl', lock)
if ttl ~= -2 then
	local known = redis.call('hmget', lock, owner, 'mode')
	if not known[1] then
		if known[2] then
			return redis.error_reply('FOREIGN the lock is a read-write lock')
		end
		local list, element, place = KEYS[2], ARGV[3] .. ':' .. owner, nil
		if how == 'called' then
			redis.pcall('lrem', list, 0, element)
			place = redis.pcall('lpush', list, element)
			if type(place) == 'number' then
				place = 1
			end
		else
			place = how == 'again' and redis.pcall('lpos', list, element)
			if type(place) == 'number' then
				place = place + 1
			else
				if place then -- there is no LPOS
					redis.pcall('lrem', list, 0, element)
				end
				place = redis.pcall('rpush', list, element)
			end
		end
		if type(place) ~= 'number' then
			return {ttl, 0}
		end
		if place == 1 or how == 'again' then
			redis.pcall('pexpire', list, 60000)
		end
		return {ttl, place}
	end
end
local token = 0
if KEYS[3] then
	token = redis.call('incr', KEYS[3])
end
redis.call('hset', lock, owner, 1)
redis.call('pexpire', lock, ARGV[1])
if how == 'again' then
	redis.pcall('lrem', KEYS[2], 0, ARGV[3] .. ':' .. owner)
end
return token
`)

// call takes the first one off the list and tells everybody: the number of zeros is its own. Without one it says 0.
//
// KEYS ?, channel, list; ARGV ?, ?, publish commands
const call = `
local element = redis.pcall('lpop', KEYS[3])
local number = type(element) == 'string' and tonumber(string.match(element, '^(%d+):') or '') or 1
if number < 2 or number > 256 then
	number = 1
end
local payload, heard = number == 1 and '0' or string.rep('0', number), 0
for i = 3, #ARGV do
	local n = redis.pcall(ARGV[i], KEYS[2], payload)
	if type(n) == 'number' then
		heard = heard + n
	end
end
`

// turnRelease is hashRelease with a call. The reply is -1 if it was answered by one in the list, or else how many heard of it, less
// those who subscribe to the sign, if that is to be; and nothing if the lock was not the owner's.
//
// KEYS lock, channel, list; ARGV owner, whether or empty, publish commands
var turnRelease = newScript(`
if redis.pcall('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
` + call + `
if number > 1 then
	return -1
end
if heard > 0 and ARGV[2] ~= '' then
	local n = redis.pcall('pubsub', 'numsub', (string.gsub(KEYS[3], '^locks_waiting', 'locks_lingering')))
	heard = heard - (n[2] or 0)
end
return heard
`)

// turnForget takes an element off the list, or, if it is not there and the lock is free, calls the next one.
//
// KEYS lock, channel, list; ARGV element, nothing, publish commands
var turnForget = newScript(`
local n = redis.pcall('lrem', KEYS[3], 0, ARGV[1])
if type(n) == 'number' and n > 0 or redis.call('exists', KEYS[1]) == 1 or redis.pcall('llen', KEYS[3]) == 0 then
	return 0
end
` + call + `
return 1
`)

// turnAwaited replies with -1 if there is somebody in the list, or else with how many subscribe to the channel, less those who subscribe
// to the sign.
//
// KEYS lock, list; ARGV channel, sign
var turnAwaited = newScript(`
local n = redis.pcall('llen', KEYS[2])
if type(n) == 'number' and n > 0 then
	return -1
end
n = redis.call('pubsub', 'numsub', ARGV[1], ARGV[2])
return n[2] - n[4]
`)

// turn is one of ours who waits.
type turn struct {
	number *number
	sign   string // see topic
	stray  func() // likewise
	watch  *watch // if there is one; not changed while somebody asks

	mu     sync.Mutex
	called bool        // it is its turn, and it has not asked since
	place  int         // in the list, about; 0: none
	asked  time.Time   // the last time
	alarm  *time.Timer // when it asks though it is not its turn
}

// ask notes that it asks now, and returns how.
func (t *turn) ask() (how any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet()
	t.asked = time.Now()
	how = again
	if t.called {
		how = called
	}
	t.called = false
	return how
}

// quiet has the alarm not go off. t.mu is held.
func (t *turn) quiet() {
	if t.alarm != nil {
		t.alarm.Stop()
	}
}

// hear takes note of a message, and reports whether it is a reason to ask now.
func (t *turn) hear(what word) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case what == t.number.n:
		t.called = true
		t.quiet()
		return true
	case what == everybody || t.place == 0:
		return true
	}
	t.place = max(t.place-1, 1)
	now := time.Now()
	d := min(time.Duration(min(t.place, slowest))*calm+rand.N(calm/2), t.asked.Add(patience).Sub(now))
	if d <= 0 {
		return true
	}
	if t.alarm == nil {
		t.alarm = time.AfterFunc(d, t.watch.notify)
	} else {
		t.alarm.Reset(d)
	}
	return false
}

// end ends its watch.
func (t *turn) end() {
	t.mu.Lock()
	t.quiet()
	t.mu.Unlock()
	if t.watch != nil {
		t.watch.Close()
	}
}

// turns is the [lease.Store] of plain and fenced locks whose waiters have turns.
type turns struct {
	*single
	mu      sync.Mutex
	waiters map[string]*turn // by owner
}

var (
	_ lease.Usher = (*turns)(nil)
	_ lease.Asker = (*turns)(nil)
)

func withTurns(s *single) *turns { return &turns{single: s, waiters: make(map[string]*turn)} }

func (s *turns) of(owner string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters[owner]
}

func (s *turns) add(owner string, t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[owner] = t
}

// remove returns the turn of an owner that waits no more, or nil.
func (s *turns) remove(owner string) *turn {
	s.mu.Lock()
	t := s.waiters[owner]
	delete(s.waiters, owner)
	s.mu.Unlock()
	if t != nil {
		t.end()
	}
	return t
}

func (s *turns) turn(name string) *turn {
	return &turn{number: s.c.hub.number.Load(), place: 1, asked: time.Now(), sign: s.sign(name), stray: func() {
		s.c.hub.wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.c.hub.life, lease.DefaultReleaseTimeout)
			defer cancel()
			s.forget(ctx, name, "")
		})
	}}
}

// sign returns the channel to which a client subscribes in addition while its subscription to that of the lock may linger: its
// subscription does not tell that it waits then. Where servers know some of the subscribers only, there is none.
func (s *single) sign(name string) string {
	if !s.signs() {
		return ""
	}
	return prefixed("locks_lingering", name)
}

func (s *single) signs() bool {
	return s.list != "" && !s.c.p.cluster() && s.c.pubsub != Sharded && s.c.pubsub != Both
}

// call releases the lock, and has the next one called.
func (s *single) call(ctx context.Context, m mode, name, owner string) (lease.Released, error) {
	n := s.names.of(s, name)
	sign := ""
	if s.signs() {
		sign = "1"
	}
	r, err := s.c.p.eval(ctx, turnRelease, 3, m.publish(append(make([]any, head, head+7), n.name, n.channel, n.list, owner, sign)))
	if err != nil || r == nil {
		return lease.Released{}, err
	}
	heard, ok := r.(int64)
	if !ok {
		return lease.Released{}, unexpected(r)
	}
	// In a cluster a server counts its own subscribers only.
	awaited := heard < 0 || heard > 0 && heard > s.c.hub.counted(n.channel.(string), s.sign(name)) || s.c.p.cluster()
	return lease.Released{Held: true, Awaited: awaited}, nil
}

// keyNames are the names of what belongs to a lock, as arguments of scripts. What is not is nil.
type keyNames struct{ name, channel, list, token any }

// nameCache has the names of some locks of a store, so that they are not made for each request.
type nameCache [64]atomic.Pointer[keyNames]

var nameSeed = maphash.MakeSeed()

func (c *nameCache) of(s *single, name string) *keyNames {
	at := &c[maphash.String(nameSeed, name)%uint64(len(c))]
	n := at.Load()
	if n == nil || n.name != name {
		n = &keyNames{name: name, channel: prefixed(s.channel, name), list: prefixed(s.list, name)}
		if s.token != "" {
			n.token = prefixed(s.token, name)
		}
		at.Store(n)
	}
	return n
}

func (s *turns) Await(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	var how any // nil for the first time
	t := s.of(owner)
	if t != nil {
		how = t.ask()
	} else if s.c.hub.linked.Load() {
		t = s.listen(ctx, name)
	}
	number := s.c.hub.number.Load()
	if t != nil {
		number = t.number
	}
	listening := t != nil && t.watch != nil
	n := s.names.of(s.single, name)
	args := append(make([]any, head, head+7), n.name, n.list)
	if n.token != nil {
		args = append(args, n.token)
	}
	keys := len(args) - head
	args = append(args, millis(d), owner, number.arg)
	if how != nil {
		args = append(args, how)
	}
	r, err := s.c.p.eval(ctx, awaitAcquire, keys, args)
	place := int64(0)
	if list, ok := r.([]any); ok && len(list) == 2 {
		place, _ = list[1].(int64)
		r = list[:1]
	}
	reply, err := granted(r, err)
	if err == nil && reply.Held || how == nil && nothingDone(err) {
		if t != nil {
			t.end()
		}
		if how != nil {
			s.remove(owner)
		}
		return reply, err
	}
	reply.Listening = listening
	if t == nil {
		t = s.turn(name)
		t.number = number
	}
	if err == nil {
		t.mu.Lock()
		t.place = int(place)
		t.mu.Unlock()
	}
	if how == nil {
		s.add(owner, t)
	}
	return reply, err
}

// listen returns a turn that hears of the lock without a request, or nil.
func (s *turns) listen(ctx context.Context, name string) *turn {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil // so does a release, which tells
	}
	t := s.turn(name)
	t.watch = &watch{c: make(chan struct{}, 1), turn: t}
	if !s.c.hub.listen(t.watch, prefixed(s.channel, name), m) {
		return nil
	}
	return t
}

// nothingDone reports whether err says that a request has surely not been carried out.
func nothingDone(err error) bool {
	return errors.Is(err, lease.ErrRefused) || errors.Is(err, locks.ErrForeign)
}

func (s *turns) Recall(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.single.Recall(ctx, name, owner)
	if r.Held {
		s.remove(owner)
	}
	return r, err
}

func (s *turns) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, err
	}
	t := s.of(owner)
	if t == nil { // it was given the lock, and gave it back
		t = s.turn(name)
		t.place = 0
		s.add(owner, t)
	}
	if t.watch != nil {
		return t.watch, nil
	}
	w := &watch{c: make(chan struct{}, 1), turn: t}
	t.watch = w
	active, err := s.c.hub.watchWith(ctx, w, prefixed(s.channel, name), m)
	if err != nil {
		t.watch = nil
		return nil, err
	}
	if active {
		select {
		case <-w.c: // of the confirmation, or of its turn: the caller asks anyway
		default:
		}
	}
	return w, nil
}

func (s *turns) Forget(ctx context.Context, name, owner string) {
	if t := s.remove(owner); t != nil {
		s.forget(ctx, name, fmt.Sprint(t.number.arg, ":", owner))
	}
}

// forget takes element off the list, or has the next one called if that was to go on.
func (s *turns) forget(ctx context.Context, name, element string) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return
	}
	args := []any{head - 1: nil, name, prefixed(s.channel, name), prefixed(s.list, name), element, ""}
	s.c.p.eval(ctx, turnForget, 3, m.publish(args))
}

func (s *turns) Awaited(ctx context.Context, name string) (bool, error) {
	sign := s.sign(name)
	if sign == "" {
		return true, nil
	}
	channel := prefixed(s.channel, name)
	own := s.c.hub.counted(channel, sign)
	r, err := s.c.p.eval(ctx, turnAwaited, 2, []any{head - 1: nil, name, prefixed(s.list, name), channel, sign})
	if err != nil {
		return false, err
	}
	n, ok := r.(int64)
	if !ok {
		return false, unexpected(r)
	}
	return n < 0 || n > own, nil
}
