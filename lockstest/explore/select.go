package explore

import "reflect"

// Case is one case of [X.Select]. It is made by [Receive], [Send] or [Default].
type Case struct {
	c    reflect.SelectCase
	then func(v reflect.Value, ok bool)
}

// Receive is the case that c delivers. It calls then, which may be nil, with the value, and with
// false if c is closed.
func Receive[T any](c <-chan T, then func(v T, ok bool)) Case {
	return Case{reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}, func(v reflect.Value, ok bool) {
		if then != nil {
			value, _ := v.Interface().(T)
			then(value, ok)
		}
	}}
}

// Send is the case that c takes v. It calls then, which may be nil.
func Send[T any](c chan<- T, v T, then func()) Case {
	value := reflect.ValueOf(&v).Elem()
	return Case{reflect.SelectCase{Dir: reflect.SelectSend, Chan: reflect.ValueOf(c), Send: value},
		func(reflect.Value, bool) {
			if then != nil {
				then()
			}
		}}
}

// Default is the case that no other case is ready. It calls then, which may be nil.
func Default(then func()) Case {
	return Case{reflect.SelectCase{Dir: reflect.SelectDefault}, func(reflect.Value, bool) {
		if then != nil {
			then()
		}
	}}
}

// Select is the select statement as a decision: if several cases are ready, any one may be taken. A
// replay takes the same case. Select returns the index of the case. A select statement of the
// program takes a ready case at random, which the schedule does not tell.
func (x *X) Select(cases ...Case) int {
	all := make([]reflect.SelectCase, len(cases))
	var ready []int // cases that can be tried one by one
	waits := true
	for i, c := range cases {
		if c.then == nil {
			panic("explore: Select: a zero Case: use Receive, Send or Default")
		}
		all[i] = c.c
		if c.c.Dir == reflect.SelectDefault {
			waits = false
		} else if c.c.Chan.IsValid() && !c.c.Chan.IsNil() {
			ready = append(ready, i)
		}
	}
	first := 0
	if len(ready) > 0 {
		first = x.Choose(len(ready))
	} else {
		x.Step()
	}
	for k := range ready {
		i := ready[(first+k)%len(ready)]
		chosen, v, ok := reflect.Select([]reflect.SelectCase{all[i], {Dir: reflect.SelectDefault}})
		if chosen == 0 {
			cases[i].then(v, ok)
			return i
		}
	}
	if waits {
		// One goroutine runs at a time, so the first case that is ready is the only one.
		i, v, ok := reflect.Select(all)
		cases[i].then(v, ok)
		return i
	}
	for i, c := range cases {
		if c.c.Dir == reflect.SelectDefault {
			c.then(reflect.Value{}, false)
			return i
		}
	}
	return -1
}
