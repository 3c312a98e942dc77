package locks

import "reflect"

// identity returns the address to which l points and the name of l's type. The result ok is false
// if l is not a reference: such an l lacks an identity by which Multi could order it.
//
// The address serves as a number only, and is never turned back into a pointer. The address stays
// the same, because the collector does not move objects. The caller keeps l in an object of its
// own. Therefore l's target is not on a stack, and only stacks move.
func identity(l any) (address uintptr, typeName string, ok bool) {
	v := reflect.ValueOf(l)
	t := v.Type()
	typeName = t.String()
	if p := t.PkgPath(); p != "" {
		typeName = p + " " + typeName
	} else if t.Kind() == reflect.Pointer {
		typeName = t.Elem().PkgPath() + " " + typeName
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.Map, reflect.UnsafePointer:
		return v.Pointer(), typeName, true
	}
	return 0, typeName, false
}

// same reports whether a and b are equal values of the same type, and false if their type cannot
// be compared.
func same(a, b any) bool {
	return sameType(a, b) && reflect.ValueOf(a).Comparable() && a == b
}

// sameType reports whether a and b have the same type; two types may share a name.
func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
