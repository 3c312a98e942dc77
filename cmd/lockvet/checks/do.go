package checks

import "go/types"

// doing returns locks.Do or locks.TryDo as the checks see them: a function that acquires its
// parameter, calls its function, and releases the lock. Its module has a fixed version in most
// programs, and then no facts. It returns nil for any other function.
func (fs *flows) doing(fn *types.Func) *function {
	waits := fn.FullName() == root+".Do"
	if !waits && fn.FullName() != root+".TryDo" {
		return nil
	}
	const ofLock, ofFunction = 1, 2 // the parameters
	params := fn.Signature().Params()
	if params.Len() <= ofFunction {
		return nil
	}
	lock := &path{root: params.At(ofLock), text: params.At(ofLock).Name()}
	o, _, _ := types.LookupFieldOrMethod(lock.typ(), true, fn.Pkg(), "LockContext")
	method, ok := o.(*types.Func)
	if !ok {
		return nil
	}
	m, ok := lockMethod(method)
	if !ok {
		return nil
	}
	f := &function{info: fs.info, obj: fn, progress: done, far: true}
	fs.freeing[f] = nil
	if waits {
		a := []acquisition{{call: &lockCall{method: m, fn: method, path: lock}, path: lock}}
		fs.certainly[f], fs.orders.acquires[f] = a, a
	} else {
		fs.certainly[f], fs.orders.acquires[f] = nil, nil
	}
	fs.calling[f] = []callback{{ofFunction, []hold{{path: lock, fn: method, mode: m.mode}}}}
	return f
}
