// Package keytext describes keys of locks, and values of panics, without running code of the
// program.
package keytext

import (
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// limit bounds a text, in bytes.
const limit = 120

// Of returns a text for a key: a string in quotes, a number, or a struct with its fields. Of
// describes a pointer, a channel, and whatever else leads to other memory by its type and its
// address: the program may be changing that memory, which may hold secrets. Of calls no method of
// the key, since a String method may take the very lock that is being described. A long text is
// cut.
func Of(key any) string { return OfValue(reflect.ValueOf(key)) }

// OfValue is Of for the value of a field, which need not be exported.
func OfValue(key reflect.Value) string {
	t := text{}
	t.value(key)
	if !t.full() {
		return string(t.b)
	}
	end := limit
	for !utf8.RuneStart(t.b[end]) {
		end--
	}
	return string(t.b[:end]) + "…"
}

type text struct{ b []byte }

func (t *text) full() bool { return len(t.b) > limit }

func (t *text) add(s string) { t.b = append(t.b, s...) }

func (t *text) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		t.add("nil")
	case reflect.Bool:
		t.b = strconv.AppendBool(t.b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		t.b = strconv.AppendInt(t.b, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		t.b = strconv.AppendUint(t.b, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		t.b = strconv.AppendFloat(t.b, v.Float(), 'g', -1, 64)
	case reflect.Complex64, reflect.Complex128:
		t.add(strconv.FormatComplex(v.Complex(), 'g', -1, 128))
	case reflect.String:
		s := v.String()
		t.b = strconv.AppendQuote(t.b, s[:min(len(s), limit)])
	case reflect.Interface:
		t.value(v.Elem())
	case reflect.Array:
		t.add("[")
		for i := 0; i < v.Len() && !t.full(); i++ {
			t.separate(i)
			t.value(v.Index(i))
		}
		t.add("]")
	case reflect.Struct:
		t.add("{")
		for i := 0; i < v.NumField() && !t.full(); i++ {
			t.separate(i)
			t.add(v.Type().Field(i).Name + ":")
			t.value(v.Field(i))
		}
		t.add("}")
	default:
		t.address(v)
	}
}

func (t *text) separate(i int) {
	if i > 0 {
		t.add(" ")
	}
}

// address adds the type and the address of a value that leads to other memory.
func (t *text) address(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan, reflect.Map, reflect.Func, reflect.Slice:
		t.add(fmt.Sprintf("%s(%#x)", v.Type(), v.Pointer()))
	default:
		t.add(v.Type().String())
	}
}
