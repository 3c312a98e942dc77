package synchronizer_test

import (
	"fmt"

	"github.com/jucgo/locks/condition"
)

// Mailbox holds one letter. Its lock is made of rules, and its conditions by package condition,
// which takes any sync.Locker. Since a Mutex has a method IsLocked, a wait or signal without the
// lock is refused.
type Mailbox struct {
	m            Mutex
	filled, read *condition.Cond
	letter       string
}

func NewMailbox() *Mailbox {
	b := new(Mailbox)
	b.filled, b.read = condition.New(&b.m), condition.New(&b.m)
	return b
}

func (b *Mailbox) Put(letter string) {
	b.m.Lock()
	defer b.m.Unlock()
	for b.letter != "" {
		b.read.Wait()
	}
	b.letter = letter
	b.filled.Signal()
}

func (b *Mailbox) Take() (letter string) {
	b.m.Lock()
	defer b.m.Unlock()
	for b.letter == "" {
		b.filled.Wait()
	}
	letter, b.letter = b.letter, ""
	b.read.Signal()
	return letter
}

func ExampleSync_condition() {
	b := NewMailbox()
	go func() {
		b.Put("first")
		b.Put("second")
	}()
	fmt.Println(b.Take())
	fmt.Println(b.Take())
	// Output:
	// first
	// second
}
