package cas_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/internal/test/freelist"
)

// A list of free slots has A, B and C. A goroutine that takes A has just read that B is behind A.
// Then another goroutine takes A and B, and puts A back. The first free slot is A again, so a plain
// compare-and-swap succeeds, and makes B the first free slot. But B is in use, and gets a second
// user. A stamp tells that A was put back.
func Example_aba() {
	demonstrate := func(l freelist.List, step *freelist.Step) {
		*step = func(first, next int) {
			*step = nil // once
			a, _ := l.Get()
			b, _ := l.Get()
			l.Put(a)
			fmt.Printf("  read %c and behind it %c; meanwhile %c is taken\n", 'A'+first, 'A'+next, 'A'+b)
		}
		slot, _ := l.Get()
		fmt.Printf("  took %c\n", 'A'+slot)
		slot, _ = l.Get()
		fmt.Printf("  took %c\n", 'A'+slot)
	}

	fmt.Println("plain compare-and-swap:")
	plain := freelist.NewPlain(3)
	demonstrate(plain, &plain.Step)

	fmt.Println("with a stamp:")
	stamped := freelist.NewStamped(3)
	demonstrate(stamped, &stamped.Step)
	// Output:
	// plain compare-and-swap:
	//   read A and behind it B; meanwhile B is taken
	//   took A
	//   took B
	// with a stamp:
	//   read A and behind it B; meanwhile B is taken
	//   took A
	//   took C
}

func ExampleStamped() {
	a, b := "A", "B"
	s := cas.NewStamped(&a, 1)
	ref, stamp := s.Load() // 1A

	s.CompareAndSwap(&a, &b, 1, 2) // 2B
	s.CompareAndSwap(&b, &a, 2, 3) // 3A

	fmt.Println(s.CompareAndSwap(ref, &b, stamp, stamp+1))
	ref, stamp = s.Load()
	fmt.Println(*ref, stamp)
	// Output:
	// false
	// A 3
}

func ExampleMarked() {
	type node struct{ name string }
	next := &node{"next"}
	link := cas.NewMarked(next, false)

	// A node that is being removed has its link marked, and then nobody inserts behind it.
	fmt.Println(link.AttemptMark(next, true))
	fmt.Println(link.CompareAndSwap(next, &node{"new"}, false, false))
	// Output:
	// true
	// false
}

func ExamplePacked() {
	var p cas.Packed
	value, stamp := p.Load()
	fmt.Println(p.CompareAndSwap(value, 42, stamp, stamp+1))
	fmt.Println(p.CompareAndSwap(value, 43, stamp, stamp+1))
	fmt.Println(p.Load())
	// Output:
	// true
	// false
	// 42 1
}

// Two fields that belong together change together.
func ExampleVersioned() {
	type account struct{ balance, bookings int }
	acc := cas.NewVersioned(account{balance: 100})

	withdraw := func(amount int) error {
		_, err := acc.Update(context.Background(), func(a account) (account, error) {
			if a.balance < amount {
				return a, errors.New("not enough money")
			}
			return account{a.balance - amount, a.bookings + 1}, nil
		})
		return err
	}
	fmt.Println(withdraw(70))
	fmt.Println(withdraw(70))
	fmt.Println(acc.Load())
	// Output:
	// <nil>
	// not enough money
	// {30 1} 1
}

func ExampleStack() {
	var s cas.Stack[string]
	s.Push("first")
	s.Push("second")
	fmt.Println(s.Len())
	fmt.Println(s.Pop())
	fmt.Println(s.Pop())
	fmt.Println(s.Pop())
	// Output:
	// 2
	// second true
	// first true
	//  false
}

// The program looks at the top before it decides whether to take it.
func ExampleStack_Peek() {
	var urgent cas.Stack[int]
	urgent.Push(3)
	if level, ok := urgent.Peek(); ok && level < 5 {
		fmt.Println("level", level, "can wait:", urgent.Len(), "left")
	}
	// Output: level 3 can wait: 1 left
}

// A new stamp makes each change fail that another goroutine has computed from the old one.
func ExampleStamped_AttemptStamp() {
	plan := "plan"
	s := cas.NewStamped(&plan, 1)
	_, seen := s.Load()
	fmt.Println(s.AttemptStamp(&plan, 2))
	fmt.Println(s.CompareAndSwap(&plan, nil, seen, seen+1))
	// Output:
	// true
	// false
}
