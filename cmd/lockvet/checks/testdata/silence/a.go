package silence

import "sync"

type queue struct {
	mu sync.Mutex
	n  int
}

func (q *queue) reported() {
	q.mu.Lock()
	q.mu.Lock() // want `Lock of q.mu`
	q.mu.Unlock()
}

func (q *queue) withReason() {
	q.mu.Lock()
	q.mu.Lock() //lockvet:ignore doublelock the watchdog has to notice this
	q.mu.Unlock()
}

func (q *queue) above() {
	q.mu.Lock()
	//lockvet:ignore doublelock the watchdog has to notice this
	q.mu.Lock()
	q.mu.Unlock()
}

func (q *queue) aboveWithAnother() {
	q.mu.Lock()
	//lockvet:ignore doublelock the watchdog has to notice this
	//lockvet:ignore lockorder another reason
	q.mu.Lock()
	q.mu.Unlock()
}

func (q *queue) byNolint() {
	q.mu.Lock()
	q.mu.Lock() //nolint:errcheck,lockvet // it waits
	q.mu.Unlock()
}

func (q *queue) byNolintOfAll() {
	q.mu.Lock()
	q.mu.Lock() //nolint
	q.mu.Unlock()
}

func (q *queue) byNolintOfTheCheck() {
	q.mu.Lock()
	q.mu.Lock() // nolint:doublelock
	q.mu.Unlock()
}

func (q *queue) withoutReason() {
	q.mu.Lock()
	/* want `Lock of q.mu` */ q.mu.Lock() //lockvet:ignore doublelock
	q.mu.Unlock()
}

func (q *queue) anotherCheck() {
	q.mu.Lock()
	/* want `Lock of q.mu` */ q.mu.Lock() //lockvet:ignore lockorder another reason
	q.mu.Unlock()
}

func (q *queue) anotherLinter() {
	q.mu.Lock()
	/* want `Lock of q.mu` */ q.mu.Lock() //nolint:errcheck
	q.mu.Unlock()
}

func (q *queue) endOfTheLineBefore() {
	q.mu.Lock() //lockvet:ignore doublelock this line has nothing to ignore
	q.mu.Lock() // want `Lock of q.mu`
	q.mu.Unlock()
}
