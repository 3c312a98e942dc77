package redisson

// Traces are the traces that Redisson 3.21.3 and 4.7.0 leave alike.
//
// When a holder re-enters a lock, Redisson counts the holds in Redis, and ours counts them in its
// process. When a writer re-enters, Redisson adds the lease to the time that is left. At each
// re-entry Redisson increments the token. The traces with a J and a G show these differences.
var Traces = []Trace{
	{"plain lock", `
A lock plain: true
	hash it: A=1, 30 s
B try plain: false
	hash it: A=1, 30 s
B unlock plain: false
	hash it: A=1, 30 s
A unlock plain: true
	published redisson_lock__channel:{it} 0
A unlock plain: false
B try plain: true
	hash it: B=1, 30 s
B unlock plain: true
	published redisson_lock__channel:{it} 0
`},
	{"waiting for a plain lock", `
A lock plain: true
	hash it: A=1, 30 s
B lock plain ...
	hash it: A=1, 30 s
	subscribed redisson_lock__channel:{it}
A unlock plain: true; B: true
	hash it: B=1, 30 s
	published redisson_lock__channel:{it} 0
B unlock plain: true
	published redisson_lock__channel:{it} 0
`},
	{"re-entry of Redisson's plain lock", `
J lock plain: true
	hash it: J=1, 30 s
J lock plain: true
	hash it: J=2, 30 s
A try plain: false
	hash it: J=2, 30 s
A unlock plain: false
	hash it: J=2, 30 s
J unlock plain: true
	hash it: J=1, 30 s
A try plain: false
	hash it: J=1, 30 s
J unlock plain: true
	published redisson_lock__channel:{it} 0
A try plain: true
	hash it: A=1, 30 s
A unlock plain: true
	published redisson_lock__channel:{it} 0
`},
	{"re-entry of our plain lock", `
G lock plain: true
	hash it: G=1, 30 s
G try plain: true
	hash it: G=1, 30 s
A try plain: false
	hash it: G=1, 30 s
A unlock plain: false
	hash it: G=1, 30 s
G unlock plain: true
	hash it: G=1, 30 s
A try plain: false
	hash it: G=1, 30 s
G unlock plain: true
	published redisson_lock__channel:{it} 0
A try plain: true
	hash it: A=1, 30 s
A unlock plain: true
	published redisson_lock__channel:{it} 0
`},
	{"fair lock", `
A lock fair: true
	hash it: A=1, 30 s
B lock fair ...
	hash it: A=1, 30 s
	list redisson_lock_queue:{it}: B
	subscribed redisson_lock__channel:{it}:B
	zset redisson_lock_timeout:{it}: B in 330 s
C lock fair ...
	hash it: A=1, 30 s
	list redisson_lock_queue:{it}: B C
	subscribed redisson_lock__channel:{it}:B
	subscribed redisson_lock__channel:{it}:C
	zset redisson_lock_timeout:{it}: B in 330 s C in 630 s
D try fair: false
	hash it: A=1, 30 s
	list redisson_lock_queue:{it}: B C
	subscribed redisson_lock__channel:{it}:B
	subscribed redisson_lock__channel:{it}:C
	zset redisson_lock_timeout:{it}: B in 330 s C in 630 s
A unlock fair: true; B: true
	hash it: B=1, 30 s
	list redisson_lock_queue:{it}: C
	published redisson_lock__channel:{it}:B 0
	subscribed redisson_lock__channel:{it}:C
	zset redisson_lock_timeout:{it}: C in 330 s
D unlock fair: false
	hash it: B=1, 30 s
	list redisson_lock_queue:{it}: C
	subscribed redisson_lock__channel:{it}:C
	zset redisson_lock_timeout:{it}: C in 330 s
B unlock fair: true; C: true
	hash it: C=1, 30 s
	published redisson_lock__channel:{it}:C 0
C unlock fair: true
D try fair: true
	hash it: D=1, 30 s
D unlock fair: true
`},
	{"read-write lock", `
A lock read: true
	hash it: A=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
B lock read: true
	hash it: A=1 B=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
C try write: false
	hash it: A=1 B=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
C unlock write: false
	hash it: A=1 B=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
C unlock read: false
	hash it: A=1 B=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
C lock write ...
	hash it: A=1 B=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
A unlock read: true
	hash it: B=1 mode=read, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
B unlock read: true; C: true
	hash it: C:write=1 mode=write, 30 s
	published redisson_rwlock:{it} 0
A try read: false
	hash it: C:write=1 mode=write, 30 s
A try write: false
	hash it: C:write=1 mode=write, 30 s
A unlock write: false
	hash it: C:write=1 mode=write, 30 s
A lock read ...
	hash it: C:write=1 mode=write, 30 s
	subscribed redisson_rwlock:{it}
C unlock write: true; A: true
	hash it: A=1 mode=read, 30 s
	published redisson_rwlock:{it} 1
	string {it}:A:rwlock_timeout:1: 1, 30 s
A unlock read: true
	published redisson_rwlock:{it} 0
`},
	{"re-entry of Redisson's reader", `
J lock read: true
	hash it: J=1 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
J lock read: true
	hash it: J=2 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:2: 1, 30 s
A try write: false
	hash it: J=2 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:2: 1, 30 s
A lock read: true
	hash it: A=1 J=2 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:2: 1, 30 s
J unlock read: true
	hash it: A=1 J=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
A unlock read: true
	hash it: J=1 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
A try write: false
	hash it: J=1 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
J unlock read: true
	published redisson_rwlock:{it} 0
A try write: true
	hash it: A:write=1 mode=write, 30 s
A unlock write: true
	published redisson_rwlock:{it} 1
`},
	{"re-entry of Redisson's writer", `
J lock write: true
	hash it: J:write=1 mode=write, 30 s
J lock write: true
	hash it: J:write=2 mode=write, 60 s
A try write: false
	hash it: J:write=2 mode=write, 60 s
J unlock write: true
	hash it: J:write=1 mode=write, 30 s
A try read: false
	hash it: J:write=1 mode=write, 30 s
J unlock write: true
	published redisson_rwlock:{it} 1
A lock read: true
	hash it: A=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
A unlock read: true
	published redisson_rwlock:{it} 0
`},
	{"re-entry of our reader and writer", `
G lock read: true
	hash it: G=1 mode=read, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
G lock read: true
	hash it: G=1 mode=read, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
G unlock read: true
	hash it: G=1 mode=read, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
A try write: false
	hash it: G=1 mode=read, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
G unlock read: true
	published redisson_rwlock:{it} 0
G lock write: true
	hash it: G:write=1 mode=write, 30 s
G lock write: true
	hash it: G:write=1 mode=write, 30 s
G unlock write: true
	hash it: G:write=1 mode=write, 30 s
A try read: false
	hash it: G:write=1 mode=write, 30 s
G unlock write: true
	published redisson_rwlock:{it} 1
A try write: true
	hash it: A:write=1 mode=write, 30 s
A unlock write: true
	published redisson_rwlock:{it} 1
`},
	{"Redisson's downgrade", `
J lock write: true
	hash it: J:write=1 mode=write, 30 s
J lock read: true
	hash it: J:write=1 J=1 mode=write, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
A try read: false
	hash it: J:write=1 J=1 mode=write, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
J unlock write: true
	hash it: J=1 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
B try write: false
	hash it: J=1 mode=read, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
A try read: true
	hash it: A=1 J=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
B lock write ...
	hash it: A=1 J=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	string {it}:J:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
J unlock read: true
	hash it: A=1 mode=read, 30 s
	string {it}:A:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
A unlock read: true; B: true
	hash it: B:write=1 mode=write, 30 s
	published redisson_rwlock:{it} 0
B unlock write: true
	published redisson_rwlock:{it} 1
`},
	// A writer of ours that reads too has two names in Redis, and tells others when it becomes
	// a reader.
	{"our downgrade", `
G lock write: true
	hash it: G:write=1 mode=write, 30 s
G lock read: true
	hash it: G:write=1 G=1 mode=write, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
A try read: false
	hash it: G:write=1 G=1 mode=write, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
A try write: false
	hash it: G:write=1 G=1 mode=write, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
B lock read ...
	hash it: G:write=1 G=1 mode=write, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
G unlock write: true; B: true
	hash it: B=1 G=1 mode=read, 30 s
	published redisson_rwlock:{it} 1
	string {it}:B:rwlock_timeout:1: 1, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
A try write: false
	hash it: B=1 G=1 mode=read, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
A lock write ...
	hash it: B=1 G=1 mode=read, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
G unlock write: false
	hash it: B=1 G=1 mode=read, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	string {it}:G:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
G unlock read: true
	hash it: B=1 mode=read, 30 s
	string {it}:B:rwlock_timeout:1: 1, 30 s
	subscribed redisson_rwlock:{it}
B unlock read: true; A: true
	hash it: A:write=1 mode=write, 30 s
	published redisson_rwlock:{it} 0
A unlock write: true
	published redisson_rwlock:{it} 1
`},
	{"fenced lock", `
A lock fenced: true
	hash it: A=1, 30 s
	string redisson_lock_token:{it}: 1
B try fenced: false
	hash it: A=1, 30 s
	string redisson_lock_token:{it}: 1
B lock fenced ...
	hash it: A=1, 30 s
	string redisson_lock_token:{it}: 1
	subscribed redisson_lock__channel:{it}
A unlock fenced: true; B: true
	hash it: B=1, 30 s
	published redisson_lock__channel:{it} 0
	string redisson_lock_token:{it}: 2
A unlock fenced: false
	hash it: B=1, 30 s
	string redisson_lock_token:{it}: 2
B unlock fenced: true
	published redisson_lock__channel:{it} 0
	string redisson_lock_token:{it}: 2
`},
	{"re-entry of Redisson's fenced lock", `
J lock fenced: true
	hash it: J=1, 30 s
	string redisson_lock_token:{it}: 1
J lock fenced: true
	hash it: J=2, 30 s
	string redisson_lock_token:{it}: 2
J unlock fenced: true
	hash it: J=1, 30 s
	string redisson_lock_token:{it}: 2
A try plain: false
	hash it: J=1, 30 s
	string redisson_lock_token:{it}: 2
J unlock fenced: true
	published redisson_lock__channel:{it} 0
	string redisson_lock_token:{it}: 2
A lock fenced: true
	hash it: A=1, 30 s
	string redisson_lock_token:{it}: 3
A unlock fenced: true
	published redisson_lock__channel:{it} 0
	string redisson_lock_token:{it}: 3
`},
	{"re-entry of our fenced lock", `
G lock fenced: true
	hash it: G=1, 30 s
	string redisson_lock_token:{it}: 1
G lock fenced: true
	hash it: G=1, 30 s
	string redisson_lock_token:{it}: 1
G unlock fenced: true
	hash it: G=1, 30 s
	string redisson_lock_token:{it}: 1
A try fenced: false
	hash it: G=1, 30 s
	string redisson_lock_token:{it}: 1
G unlock fenced: true
	published redisson_lock__channel:{it} 0
	string redisson_lock_token:{it}: 1
`},
}
