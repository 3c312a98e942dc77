package deferloop

import "sync"

type queue struct {
	mu   sync.Mutex
	list []int
}

type item struct{ mu sync.Mutex }

func (q *queue) all(list []int) {
	for _, n := range list {
		q.mu.Lock()
		defer q.mu.Unlock() // want `deferred Unlock of q.mu in a loop: the next round waits for the return of this function`
		q.list = append(q.list, n)
	}
}

func (q *queue) always(c <-chan int) {
	for {
		q.mu.Lock()
		defer q.mu.Unlock() // want `deferred Unlock of q.mu in a loop`
		if n, ok := <-c; ok {
			q.list = append(q.list, n)
			continue
		}
		return
	}
}

func (q *queue) allByLiteral(list []int) {
	for _, n := range list {
		q.mu.Lock()
		defer func() { // want `deferred Unlock of q.mu in a loop`
			q.mu.Unlock()
		}()
		q.list = append(q.list, n)
	}
}

func (q *queue) unlock() { q.mu.Unlock() }

func (q *queue) allByMethod(list []int) {
	for _, n := range list {
		q.mu.Lock()
		defer q.unlock() // want `deferred Unlock of q.mu in a loop`
		q.list = append(q.list, n)
	}
}

func (q *queue) some(list []int) {
	for _, n := range list {
		if n > 0 {
			q.mu.Lock()
			defer q.mu.Unlock() // want `deferred Unlock of q.mu in a loop`
			q.list = append(q.list, n)
		}
	}
}

// What follows is right.

func (q *queue) onFirst(list []int) {
	for i, n := range list {
		if i == 0 {
			q.mu.Lock()
			defer q.mu.Unlock()
		}
		q.list = append(q.list, n)
	}
}

func (q *queue) onDemand(list []int) {
	locked := false
	for _, n := range list {
		if n > 0 && !locked {
			q.mu.Lock()
			defer q.mu.Unlock()
			locked = true
		}
	}
}

func (q *queue) ifStill(list []int) {
	for _, n := range list {
		q.mu.Lock()
		still := true
		defer func() {
			if still {
				q.mu.Unlock()
			}
		}()
		q.list = append(q.list, n)
		still = false
		q.mu.Unlock()
	}
}

func (q *queue) againByLiteral(list []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range list {
		q.mu.Unlock()
		func() {
			q.mu.Lock()
			defer func() { q.mu.Unlock() }()
			q.list = append(q.list, n)
		}()
		q.mu.Lock()
	}
}

func (q *queue) each(list []int) {
	for _, n := range list {
		func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.list = append(q.list, n)
		}()
	}
}

func (q *queue) first(list []int) {
	for _, n := range list {
		if n > 0 {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.list = append(q.list, n)
			break
		}
	}
}

func others(items []*item) {
	for _, i := range items {
		i.mu.Lock()
		defer i.mu.Unlock()
	}
}

func (q *queue) before(list []int) {
	q.mu.Lock()
	for range list {
		defer q.mu.Unlock()
		break
	}
}
