package scenarios

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // in Go alone, so that the lab runs wherever Go does

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// database is one of SQLite, in a temporary file.
type database struct {
	dir string
	all []*sql.DB
}

func newDatabase(ctx context.Context, l *lab.Lab, schema ...string) *database {
	dir, err := os.MkdirTemp("", "locklab")
	l.Must(err)
	d := &database{dir: dir}
	db := d.process(l)
	for _, s := range schema {
		_, err := db.ExecContext(ctx, s)
		l.Must(err)
	}
	return d
}

// process returns the database as another process has it: with connections of its own.
func (d *database) process(l *lab.Lab) *sql.DB {
	// The file is of no use after the run, so nothing waits for the disk.
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(d.dir, "db"))+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)")
	l.Must(err)
	d.all = append(d.all, db)
	return db
}

// end ends locks, all connections, and the file.
func (d *database) end(all ...interface{ Close(context.Context) error }) {
	for _, c := range all {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = c.Close(ctx) // What is still held is of no interest any more.
		cancel()
	}
	for _, db := range d.all {
		_ = db.Close()
	}
	_ = os.RemoveAll(d.dir)
}

// number returns the number that a query is for.
func number(ctx context.Context, l *lab.Lab, db *sql.DB, query string, args ...any) (n int64) {
	l.Must(db.QueryRowContext(ctx, query, args...).Scan(&n))
	return n
}
