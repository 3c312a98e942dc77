package zklock

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// watches are the watches of a session. Each target has at most one watch at the server, however
// many listeners it has here. The ZooKeeper client cannot take a watch back. So a watch that is set
// already serves the next listener too.
//
// A watch reports one event, and is then forgotten. A listener must listen again after the event.
type watches struct {
	mu sync.Mutex
	m  map[target]*watch
}

// target is a node, or the list of its children.
type target struct {
	path     string
	children bool
}

type watch struct {
	armed     bool // the server will report the next event
	listeners map[any]func(zk.Event)
}

// listen makes the next event at a target call f, unless ignore is called before. f must not block.
func (ws *watches) listen(at target, key any, f func(zk.Event)) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.m[at]
	if w == nil {
		w = &watch{listeners: make(map[any]func(zk.Event))}
		ws.m[at] = w
	}
	w.listeners[key] = f
}

// ignore ends listen.
func (ws *watches) ignore(at target, key any) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.m[at]; w != nil {
		delete(w.listeners, key)
		if len(w.listeners) == 0 && !w.armed {
			delete(ws.m, at)
		}
	}
}

// find returns the watch at a target, or nil, and whether it is armed.
func (ws *watches) find(at target) (w *watch, armed bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w = ws.m[at]
	return w, w != nil && w.armed
}

// ask reads a target with a watch, or without a watch if the server has one already. It returns
// again if the listener may not be told of the next event.
func (ws *watches) ask(at target, plain, watching func() error) (again bool, err error) {
	w, armed := ws.find(at)
	if armed {
		err = plain()
	} else {
		err = watching()
	}
	return err == nil && !ws.arm(at, w), err
}

// arm notes that the server has accepted w. It reports false if an event was reported, or w was
// forgotten, since.
func (ws *watches) arm(at target, w *watch) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w == nil || ws.m[at] != w {
		return false
	}
	w.armed = true
	return true
}

// fire calls the listeners. The deletion of a node ends the watch of its children too.
func (ws *watches) fire(e zk.Event) {
	ws.fireAt(target{e.Path, e.Type == zk.EventNodeChildrenChanged}, e)
	if e.Type == zk.EventNodeDeleted {
		ws.fireAt(target{e.Path, true}, e)
	}
}

func (ws *watches) fireAt(at target, e zk.Event) {
	ws.mu.Lock()
	w := ws.m[at]
	delete(ws.m, at)
	ws.mu.Unlock()
	if w == nil {
		return
	}
	for _, f := range w.listeners { // nobody else refers to w now, but to compare it
		f(e)
	}
}
