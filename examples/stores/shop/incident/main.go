// Command incident is a shop in trouble: two transfers wait for each other, and a clerk has left
// without unlocking the till. The page of its locks shows both:
//
//	go run ./examples/stores/shop/incident
//
// Open http://localhost:6060/debug/locks. For text, run curl on the same address.
package main

import (
	"fmt"
	"log"
	"net/http"
	"sync"

	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/keyed"
)

func main() {
	http.Handle("/debug/locks", locksdebug.Handler()) // from now on, waits are timed
	trouble()
	fmt.Println("open http://localhost:6060/debug/locks")
	log.Fatal(http.ListenAndServe("localhost:6060", nil)) // only this machine reaches the page
}

// trouble starts goroutines that wait for ever.
func trouble() {
	var shop keyed.Mutexes[string] // a lock for each name
	alice, bob, till := shop.Of("account of Alice"), shop.Of("account of Bob"), shop.Of("till")

	var met sync.WaitGroup // until both transfers hold their first account
	met.Add(2)
	go transfer(alice, bob, &met)
	go transfer(bob, alice, &met)
	met.Wait()

	var clerk sync.WaitGroup
	clerk.Go(till.Lock) // and no Unlock
	clerk.Wait()
	for range 3 {
		go pay(till)
	}
}

// transfer locks the accounts in the order of the transfer. This order is the mistake.
func transfer(from, to keyed.Mutex[string], met *sync.WaitGroup) {
	from.Lock()
	defer from.Unlock()
	met.Done()
	met.Wait() //lockvet:ignore blocked this program shows what the page says of the mistake
	to.Lock()
	defer to.Unlock()
}

func pay(till keyed.Mutex[string]) {
	till.Lock()
	defer till.Unlock()
}
