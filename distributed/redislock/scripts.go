package redislock

import (
	"embed"

	"github.com/jucgo/locks/distributed/redislock/internal/lua"
)

// The scripts are in the folder lua, each with its keys, its arguments and its reply on top. A
// file whose name begins with lib has functions, which precede the scripts that use them.
//
//go:embed lua/*.lua
var sources embed.FS

// load returns the script in the file of the last name, with the libraries of the other names
// before it. Libraries that package redlock needs too are in package lua.
func load(names ...string) *script { return lua.Load(sources, names...) }

var (
	hashAcquire = load("lib_look", "lib_take", "hash_acquire")
	hashLookup  = load("lib_touch", "hash_lookup")
	hashRenew   = load("lib_typed", "hash_renew")
	hashForce   = load("lib_typed", "lib_publish", "lib_locklike", "hash_force")
	hashInspect = load("lib_look", "lib_typed", "lib_waiters", "hash_inspect")
	awaited     = load("lib_typed", "awaited")
	tell        = load("lib_publish", "tell")
	identities  = load("lib_typed", "identities")

	waitAcquire = load("lib_look", "lib_ours", "lib_take", "lib_place", "wait_acquire")
	waitRelease = load("lib_typed", "lib_publish", "lib_wake", "wait_release")
	waitLeave   = load("lib_publish", "lib_wake", "wait_leave")

	fairAcquire = load("lib_look", "lib_take", "lib_firm", "lib_publish", "lib_ours", "lib_fair", "fair_acquire")
	fairLeave   = load("lib_publish", "lib_ours", "lib_fair", "fair_leave")
	fairRelease = load("lib_typed", "lib_publish", "lib_ours", "lib_fair", "fair_release")
	fairForce   = load("lib_typed", "lib_publish", "lib_locklike", "lib_ours", "lib_fair", "fair_force")

	simpleAcquire = load("lib_place", "simple_acquire")
	simpleLookup  = load("lib_touch", "simple_lookup")
	simpleRenew   = load("lib_typed", "simple_renew")
	simpleRelease = load("lib_typed", "lib_publish", "lib_wake", "simple_release")
	simpleForce   = load("lib_publish", "simple_force")
	simpleInspect = load("lib_typed", "lib_waiters", "simple_inspect")

	writeAcquire = load("lib_ours", "lib_place", "lib_rwlook", "write_acquire")
	writeRenew   = load("lib_typed", "lib_readers", "write_renew")
	writeRelease = load("lib_typed", "lib_publish", "lib_readers", "lib_rwwake", "write_release")
	writeForce   = load("lib_publish", "lib_readers", "lib_rwforce", "write_force")
	rwInspect    = load("lib_typed", "lib_waiters", "rw_inspect")
	rwLeave      = load("lib_typed", "lib_publish", "lib_rwwake", "rw_leave")
	readAcquire  = load("lib_ours", "lib_place", "lib_rwlook", "read_acquire")
	readLookup   = load("lib_touch", "read_lookup")
	readRenew    = load("lib_typed", "lib_readers", "read_renew")
	readRelease  = load("lib_typed", "lib_publish", "lib_readers", "lib_rwwake", "read_release")
	readForce    = load("lib_publish", "lib_readers", "lib_rwforce", "read_force")

	permitsAcquire = load("lib_now", "lib_permits", "lib_place", "permits_acquire")
	permitsLookup  = load("lib_now", "lib_permits", "lib_touch", "permits_lookup")
	permitsRenew   = load("lib_typed", "lib_firm", "lib_now", "lib_permits", "permits_renew")
	permitsRelease = load("lib_typed", "lib_now", "lib_permits", "lib_publish", "lib_permitswake", "permits_release")
	permitsLeave   = load("lib_typed", "lib_now", "lib_permits", "lib_publish", "lib_permitswake", "permits_leave")
	permitsForce   = load("lib_now", "lib_permits", "lib_publish", "permits_force")
	permitsInspect = load("lib_typed", "lib_now", "lib_permits", "lib_waiters", "permits_inspect")

	expirableAcquire = load("lib_publish", "lib_now", "lib_lapsed", "expirable_acquire")
	expirableLookup  = load("lib_publish", "lib_now", "lib_lapsed", "expirable_lookup")
	expirableRenew   = load("lib_typed", "lib_firm", "lib_publish", "lib_now", "lib_lapsed", "expirable_renew")
	expirableRelease = load("lib_typed", "lib_publish", "lib_now", "lib_lapsed", "expirable_release")
	expirableFree    = load("lib_publish", "lib_now", "lib_lapsed", "expirable_free")

	semaphoreInit    = load("lib_publish", "lib_lapsed", "semaphore_init")
	semaphoreAdd     = load("lib_firm", "lib_publish", "lib_lapsed", "semaphore_add")
	semaphoreResize  = load("lib_publish", "lib_lapsed", "semaphore_resize")
	semaphoreAcquire = load("lib_publish", "lib_lapsed", "semaphore_acquire")
	semaphoreFree    = load("lib_publish", "lib_lapsed", "semaphore_free")
	semaphoreDrain   = load("lib_publish", "lib_lapsed", "semaphore_drain")

	gateAdmit = load("gate_admit")
)
