package locksdebug_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/jucgo/locks"
	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
)

// The program decides where the handler is: here on a port that only this machine reaches. Do not
// make it public.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", locksdebug.Handler())
	server := &http.Server{Addr: "localhost:6060", Handler: mux}
	fmt.Println(server.Addr)
	// Output: localhost:6060
}

// A Recorder adds the names and the holders of locks, also of those without owners.
func ExampleWithRecorder() {
	r := record.New(record.Options{Waits: true, Held: locksdebug.HeldProfile()})
	var option locksdebug.Option = locksdebug.WithRecorder(r)
	server := httptest.NewServer(locksdebug.Handler(option))
	defer server.Close()

	cache := r.Wrap("cache", new(fair.Mutex))
	_ = locks.Do(context.Background(), cache, func(ctx context.Context) error {
		fmt.Println("in the profile:", locksdebug.HeldProfile().Count())
		answer, err := http.Get(server.URL)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var text strings.Builder
		if err := answer.Write(&text); err != nil {
			return err
		}
		fmt.Println("on the page:", strings.Contains(text.String(), "LOCK cache  fair.Mutex"))
		return nil
	})
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// in the profile: 1
	// on the page: true
}

// A lock on a store describes its holder in any process, if it is watched.
func ExampleWatch() {
	var lock locks.Inspector = new(fair.Mutex) // or a lock of redislock
	http.Handle("/debug/locks", locksdebug.Handler(locksdebug.WithInspector("report", lock)))
}
