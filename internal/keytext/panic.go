package keytext

import (
	"errors"
	"reflect"
)

// Panic returns the value of a panic as an error. An error is returned as it is, and a string is
// the text of the error. The text of a number is its type and value, and the text of any other
// value is its type alone. Panic calls no method of value, whose String may take the very lock that
// has panicked, and reads no memory that value leads to, since other goroutines may be changing it.
func Panic(value any) error {
	switch v := value.(type) {
	case error:
		return v
	case string:
		return errors.New(v)
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return errors.New("nil")
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan, reflect.Map, reflect.Func, reflect.Slice,
		reflect.Array, reflect.Struct:
		return errors.New("a " + v.Type().String())
	}
	return errors.New(v.Type().String() + "(" + OfValue(v) + ")")
}
