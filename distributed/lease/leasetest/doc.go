// Package leasetest proves a lock on a store: several clients, one store, and faults in between.
// Use it for your own [driver.Store], on each topology of servers that you support:
//
//	func TestMyStore(t *testing.T) {
//		leasetest.TestStore(t, leasetest.Config{
//			Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
//				client := mystore.Dial(addr, link.DialContext)
//				tb.Cleanup(client.Close)
//				return mystore.New(client)
//			},
//		})
//	}
//
// Each client of a check stands for another process: it is a Store, or an adapter's client, with
// connections of its own. Between a client and the store stand two things that cause faults.
// [Requests] wraps the Store: requests are lost ([LostRequest], [SilentRequest]), late ([Late],
// until [Requests.Deliver]) or [Repeated], and replies are lost ([LostReply], [SilentReply]). The
// errors of these requests match [ErrFault]. After [Requests.Die] no request comes through, as if
// the process were killed. A [Link] is the network of the client: it is cut, silent, slow or reset.
//
// A check that fails says which promise was broken and by which client, and shows the last events
// of the clients concerned.
//
// The checks take some seconds to a minute, most of it waiting for leases to end. The flag
// -leasetest.long=10m makes the check called Chaos go on for ten minutes, with clients that are
// killed, stopped and cut off by chance, and so the check PermitsUnderFaults of a semaphore. A time
// below three seconds shortens the check called Turns, too. The names of the tests give the seeds
// of these checks, of the check History, and of [Simulate]. New seeds are drawn for a longer Chaos,
// and with LOCKS_SEARCH=new in the environment.
//
// # Virtual time
//
// If the server of your store can be in the memory of the test, [TestInVirtualTime] runs the same
// checks without the waiting. Its clients use the Store directly, or connect with [Link.Pipe]:
//
//	func TestMyStore(t *testing.T) {
//		leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config {
//			server := mystore.NewServer()
//			return leasetest.Config{
//				Store: func(tb testing.TB, link *leasetest.Link) driver.Store {
//					return mystore.New(func() net.Conn { return link.Pipe(server.Serve) })
//				},
//			}
//		})
//	}
//
// Prove your adapter on the real server as well: a server in memory has the mistakes of its author.
//
// # Simulation
//
// [Simulate] goes further with such a server. Processes use its locks for as long as you like.
// Meanwhile requests are lost, late and repeated, processes stand still and die, and the server is
// away. All of these events are drawn from a seed, which a failure shows. Each run has the same
// seeds, unless the flag -leasetest.simulate asks for a longer run. An hour takes some
// seconds. A failure is shortened, and shows the steps of the processes concerned. See [World] for
// a store that has a protocol of its own.
//
// Folder examples/simulated of the module has a store in memory, and the same behind connections.
// Each is simulated in less than twenty lines.
//
// Most lives are full of faults. World.Service is for lives with hours between two faults.
// Config.Forget and Config.SetClock are for faults that break promises of the store itself.
//
// # What it cannot see
//
// The checks take place in one process and on one machine: clocks of clients never differ.
// Whether the store's server keeps its own promises, such as after a failover, is a matter of the
// servers that the tests start. A race of some nanoseconds inside of the server is met by chance.
// No check waits for longer than some leases, such as for the longest lease that a store can
// keep. The store decides whether readers that come all the time starve a writer. Package
// lockstest checks what one process sees of a lock.
package leasetest
