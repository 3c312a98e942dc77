package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks/singleton"
)

// A package variable that costs nothing until it is used.
var greeting = singleton.New(func() (string, error) {
	fmt.Println("constructing")
	return "hello", nil
})

func ExampleLazy() {
	fmt.Println(greeting.MustGet())
	fmt.Println(greeting.MustGet())
	// Output:
	// constructing
	// hello
	// hello
}

// After a failed constructor, the next Get calls it again.
func ExampleLazy_Get() {
	calls := 0
	conn := singleton.New(func() (string, error) {
		if calls++; calls == 1 {
			return "", errors.New("server is starting")
		}
		return "connected", nil
	})
	fmt.Println(conn.Get())
	fmt.Println(conn.Get())
	// Output:
	//  server is starting
	// connected <nil>
}

// A caller that cannot wait for a slow constructor gives up, and the constructor goes on.
func ExampleLazy_GetContext() {
	begun, finish := make(chan struct{}), make(chan struct{})
	slow := singleton.New(func() (int, error) {
		close(begun)
		<-finish
		return 42, nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		slow.MustGet()
	}()
	<-begun

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := slow.GetContext(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	close(finish)
	<-done
	fmt.Println(slow.GetContext(ctx))
	// Output:
	// true
	// 42 <nil>
}

// A page of statistics shows the value only if the program has needed it already.
func ExampleLazy_Peek() {
	cache := singleton.New(func() (map[string]int, error) { return map[string]int{"a": 1}, nil })
	_, built := cache.Peek()
	fmt.Println("built:", built)
	cache.MustGet()
	m, built := cache.Peek()
	fmt.Println("built:", built, "entries:", len(m))
	// Output:
	// built: false
	// built: true entries: 1
}
