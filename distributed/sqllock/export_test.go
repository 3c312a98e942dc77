package sqllock

// Told returns the number of the holder that each waiter here for the lock called name heard of
// last.
func (t *Table) Told(name string) []int64 { return t.c.told(name) }

// Told is [Table.Told] for a lock of another kind.
func (r *Row) Told(name string) []int64 { return r.c.told(name) }

// Told is [Table.Told] for a lock of another kind.
func (a *Advisory) Told(name string) []int64 { return a.c.told(name) }

func (c *core) told(name string) (holders []int64) {
	c.waiters.each(name, func(w *watch) {
		w.mu.Lock()
		defer w.mu.Unlock()
		holders = append(holders, w.holder)
	})
	return holders
}

const (
	Interrupted = interrupted
	Busy        = busy
	Missing     = missing
	Foreign     = foreign
)

var (
	OfPostgres    = ofPostgres
	OfMySQL       = ofMySQL
	OfSQLite      = ofSQLite
	OfDrivers     = ofDrivers
	ClassOfState  = classOfState
	ClassOfNumber = classOfNumber
)
