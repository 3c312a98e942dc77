package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// Who of ours waits for a plain or fenced lock has a place in a list beside it, locks_waiting:{lock}. A release of ours takes the
// first one off, and its message says whose turn it is, so that one process asks and not all. Redisson does not know the list: its
// waiters hear of every release, and its releases wake all of ours.
//
// An element of the list is the number of a client, a colon, and the owner. Each client draws a number, from least to most. If two
// have the same one, both ask; whichever is called for nothing draws another.
//
//	message   from                                Redisson's waiters    ours
//	0         Redisson; ours if nobody has a      one in each process   all ask
//	          place; whoever forces an unlock
//	1         an administrator                    all                   all ask
//	n zeros   ours: it is the turn of number n    one in each process   n asks, the others get ready to
//	else      nobody we know                      none                  none
//
// Redisson takes n zeros for the number 0.
//
// To get ready is to ask after a while, unless there is another message before: after calm for the first one in the list, twice that
// for the second, and so on, and in any case patience after the first of such messages. So the others do not ask in vain if one who
// is called does, and the lock is free for calm if not.
//
// # No waiter sleeps for ever
//
// One that sleeps was refused, and its subscription was active before that request was sent, or it has asked again since it is. After
// that the lock becomes free by
//
//   - a release of ours, a forced unlock, or one of Redisson's: it hears of it, and asks, at once or when it is ready. Only messages can
//     put that off, each of which tells that the lock was free once more, and not for longer than patience.
//   - the end of the lease: it asks then, for it was told the time to live.
//   - somebody who deletes it and says nothing: it asks in turn, whatever happens, as [lease.WithPoll] says.
//
// If a message is lost because the connection is, it asks when it has subscribed again; and if it is lost otherwise, in turn. Nothing
// of that depends on the list. It may be lost, be of another type, or have anything in it.
//
// # What the list costs when it is wrong
//
//	the one who is called              what then
//	has died, or cannot be reached     the lock is free for calm
//	hears of it when it is too late    it asks, is refused, and has the first place in the list
//	has given up                       when it leaves the list, it sees that it is not in it, and calls the next one if the lock is free
//	has the lock already               it was in the list twice, or its number is another's too: its release calls the next one
//	waits no more: its place was       its client calls the next one, if the lock is free
//	given by a request that was late
//	is missing: nobody has a place     the message is 0, and all ask
//
//	the list                           what then
//	is deleted, or has expired         likewise, and who asks has a place again
//	is of another type                 likewise each time: no release fails because of it, nor a request
//	lacks one who waits                it asks after patience, and has a place again
//	has one who has died               until it is its turn, or for a minute if nobody uses the list
const (
	least = 2 // 1 would be Redisson's 0
	most  = 256

	calm     = 25 * time.Millisecond
	slowest  = 20          // times calm: for how long at most one gets ready
	patience = time.Second // for which one relies on others who are told to ask
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

// turnRelease is hashRelease with a call. The reply is -1 if somebody is called, or else how many heard of it, less those who
// subscribe to the sign, if these count; and nothing if the lock was not the owner's.
//
// KEYS lock, channel, list; ARGV owner, whether signs count or empty, publish commands
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
	place  int         // in the list, about
	since  time.Time   // when it heard of another's turn first since it asked, or zero
	alarm  *time.Timer // when it asks though it is not its turn
}

// ask notes that it asks now, and returns how.
func (t *turn) ask() (how any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet()
	t.since = time.Time{}
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
	case what == everybody:
		return true
	}
	t.place = max(t.place-1, 1)
	now := time.Now()
	if t.since.IsZero() {
		t.since = now
	}
	d := min(time.Duration(min(t.place, slowest))*calm+rand.N(calm/2), t.since.Add(patience).Sub(now))
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
	_ lease.Usher            = (*turns)(nil)
	_ lease.ContentionProber = (*turns)(nil)
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
	return &turn{number: s.c.hub.number.Load(), sign: s.sign(name), stray: func() {
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
	return s.list != "" && !s.c.p.Cluster() && s.c.pubsub != Sharded && s.c.pubsub != Both
}

// call releases the lock, and has the next one called.
func (s *single) call(ctx context.Context, m mode, name, owner string) (lease.Released, error) {
	n, q := s.names(name), newRequest(owner+s.suffix, 0)
	var sign any = ""
	if s.signs() {
		sign = "1"
	}
	q.args = m.publish(append(q.args, &n.name, &n.channel, &n.list, &q.owner, sign))
	r, err := s.c.p.Eval(ctx, turnRelease, 3, q.args)
	q.done(err)
	if err != nil || r == nil {
		return lease.Released{}, err
	}
	heard, ok := r.(int64)
	if !ok {
		return lease.Released{}, unexpected(r)
	}
	// In a cluster a server counts its own subscribers only.
	awaited := heard < 0 || heard > 0 && heard > s.c.hub.counted(n.channel, s.sign(name)) || s.c.p.Cluster()
	return lease.Released{Held: true, Awaited: awaited}, nil
}

func (s *turns) Await(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	var how any // nil for the first time
	t := s.of(owner)
	if t != nil {
		how = t.ask()
	} else {
		t = s.listen(ctx, name)
	}
	number := s.c.hub.number.Load()
	if t != nil {
		number = t.number
	}
	listening := t != nil && t.watch != nil
	n, q := s.names(name), newRequest(owner, d)
	q.args = append(q.args, &n.name, &n.list)
	if s.token != "" {
		q.args = append(q.args, &n.token)
	}
	keys := len(q.args) - head
	q.args = append(q.args, &q.millis, &q.owner, number.arg)
	if how != nil {
		q.args = append(q.args, how)
	}
	r, err := s.c.p.Eval(ctx, awaitAcquire, keys, q.args)
	q.done(err)
	place := int64(0)
	if list, ok := r.([]any); ok && len(list) == 2 {
		place, _ = list[1].(int64)
		r = list[:1]
	}
	reply, err := granted(r, err)
	if err == nil && reply.Held && how != nil && isProvisional(ctx) {
		return reply, err // it may wait on
	}
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
	channel := s.names(name).channel
	if active, _ := s.c.hub.subscribed(channel); active == 0 {
		return nil
	}
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil
	}
	t := s.turn(name)
	t.watch = &watch{c: make(chan struct{}, 1), turn: t}
	if !s.c.hub.listen(t.watch, channel, m) {
		return nil
	}
	return t
}

// nothingDone reports whether err says that a request has surely not been carried out.
func nothingDone(err error) bool {
	return errors.Is(err, lease.ErrRefused) || errors.Is(err, locks.ErrForeign)
}

func (s *turns) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.single.Lookup(ctx, name, owner)
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
	s.c.p.Eval(ctx, turnForget, 3, m.publish(args))
}

func (s *turns) Contended(ctx context.Context, name string) (bool, error) {
	sign := s.sign(name)
	if sign == "" {
		return true, nil
	}
	channel := prefixed(s.channel, name)
	own := s.c.hub.counted(channel, sign)
	r, err := s.c.p.Eval(ctx, turnAwaited, 2, []any{head - 1: nil, name, prefixed(s.list, name), channel, sign})
	if err != nil {
		return false, err
	}
	n, ok := r.(int64)
	if !ok {
		return false, unexpected(r)
	}
	return n < 0 || n > own, nil
}
