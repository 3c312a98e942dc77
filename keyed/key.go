package keyed

import (
	"reflect"
	"strconv"
	"strings"
)

// appendKey appends a text to b. The texts of two keys are equal if and only if the keys are ==. A
// text has no zero byte, because the name of a lock ends at the first zero byte of its key: see
// [locks.Multi]. appendKey reads no memory that a key points to, and calls no method of a key.
func appendKey(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.Complex64, reflect.Complex128:
		c := v.Complex()
		return appendFloat(append(appendFloat(b, real(c)), '+'), imag(c))
	case reflect.String:
		s := v.String()
		if strings.Contains(s, "\x00") {
			return strconv.AppendQuote(b, s)
		}
		return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan:
		return strconv.AppendUint(b, uint64(v.Pointer()), 16)
	case reflect.Interface:
		if v.IsNil() {
			return append(b, "nil"...)
		}
		return appendTyped(b, v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			b = append(appendKey(b, v.Index(i)), ',')
		}
		return append(b, ']')
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" { // == ignores it too
				b = append(appendKey(b, v.Field(i)), ',')
			}
		}
		return append(b, '}')
	}
	panic("keyed: key of type " + v.Type().String() + " cannot be compared")
}

// appendTyped is appendKey for a value in an interface. The address of the type identifies it:
// two packages may have types of one name.
func appendTyped(b []byte, v reflect.Value) []byte {
	b = strconv.AppendUint(b, uint64(reflect.ValueOf(v.Type()).Pointer()), 16)
	return appendKey(append(b, ':'), v)
}

func appendFloat(b []byte, f float64) []byte {
	if f == 0 {
		f = 0 // for -0, which equals it
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}
