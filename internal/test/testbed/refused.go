package testbed

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jucgo/locks"
)

// Refused checks every exported method of l, whose name is refused for the reason why. A method
// with a ctx returns an error: the reason, or that the caller does not hold the lock. So a
// refused lock cannot touch the data of others. The remaining methods do not panic.
func Refused(t *testing.T, l locks.TryLocker, why string) {
	t.Helper()
	v := reflect.ValueOf(l)
	for i := range v.NumMethod() {
		t.Run(v.Type().Method(i).Name, func(t *testing.T) {
			m := v.Method(i).Type()
			var args []reflect.Value
			asks := false
			for j := range m.NumIn() {
				arg := reflect.Zero(m.In(j))
				if m.In(j) == reflect.TypeFor[context.Context]() {
					asks = true
					arg = reflect.ValueOf(locks.WithOwner(t.Context(), locks.NewOwner()))
				}
				args = append(args, arg)
			}
			results := v.Method(i).Call(args)
			if !asks {
				return
			}
			err, _ := results[len(results)-1].Interface().(error)
			switch {
			case err == nil:
				t.Errorf("no error of a lock that is refused: %s", why)
			case !errors.Is(err, locks.ErrNotHeld) && !strings.Contains(err.Error(), why):
				t.Errorf("the error does not say %q: %v", why, err)
			}
		})
	}
}
