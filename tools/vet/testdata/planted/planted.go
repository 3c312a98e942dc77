package planted // want ST1000

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/ioutil" // want SA1019
	"sync"

	"example.com/old"
)

func GoVet(ctx context.Context) context.Context {
	fmt.Printf("%d\n", "text")             // want printf SA5009
	old.Logf("%d\n", "text")               // want printf
	ctx, cancel := context.WithCancel(ctx) // want lostcancel
	if ctx.Err() == nil {
		return ctx // want lostcancel
	}
	cancel()
	return ctx
}

func Staticcheck(r io.Reader, ok bool) error {
	old.Log("text") // want SA1019
	ioutil.ReadAll(r)
	if ok == true { // want S1002
		return errors.New("No such text") // want ST1005
	}
	fmt.Sprint(r) // want SA4017 unusedresult
	return nil
}

func disabled(n int) bool { return n == n }

func usedByTheTest() bool { return disabled(1) }

func unused() { // want U1000
}

type fields struct {
	used   int
	unused int // want U1000
}

// A check that is disabled by default wants the name here.
func Fields() int { return fields{}.used }

type generic[T any] struct{ value T }

func Instance() int { return generic[int]{}.value }

func Lockvet(mu *sync.Mutex) {
	mu.Lock()
	mu.Lock() // want doublelock
	mu.Unlock()
}

// Said must not be copied.
type Said struct{ count int } // want copies

type Shown struct{ counts [2]counted } // want copies

// Agreed must not be copied.
type Agreed struct{ counted }

type counted struct {
	sync.Mutex
	n int
}

func (a *Agreed) N() int { return a.n + Said{}.count + (&Shown{}).counts[0].n }
