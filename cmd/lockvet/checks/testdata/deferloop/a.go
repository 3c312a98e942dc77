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

// What follows is right.

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
