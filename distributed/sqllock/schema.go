package sqllock

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// names are those of the tables, as they are written in statements.
type names struct {
	locks, queue, rows string
	place              string // the name of an index
	channel            string // of notifications
}

func tableNames(d Dialect, table string) (n names, err error) {
	if d != Postgres && d != MySQL && d != SQLite {
		return n, fmt.Errorf("sqllock: there is no %v", d)
	}
	if n.locks, err = d.identifier(table); err != nil {
		return n, err
	}
	quote := n.locks[len(n.locks)-1:]
	behind := func(suffix string) string { return strings.TrimSuffix(n.locks, quote) + suffix + quote }
	n.queue, n.rows = behind("_queue"), behind("_rows")
	parts := strings.Split(table, ".")
	last := parts[len(parts)-1]
	n.channel = last
	n.place = quote + last + "_place" + quote
	return n, nil
}

// replace returns template with what depends on the names and the dialect, beside the arguments, put in.
func (n names) replacements(d Dialect) []string {
	update := "FOR UPDATE"
	if d == SQLite {
		update = ""
	}
	return []string{
		"{locks}", n.locks, "{queue}", n.queue, "{rows}", n.rows, "{place}", n.place,
		"{now}", now[d], "{until}", until[d], "{update}", update,
		"{after3}", fmt.Sprintf(after[d], argument(d, 3)), "{after2}", fmt.Sprintf(after[d], argument(d, 2)),
		"{after1}", fmt.Sprintf(after[d], argument(d, 1)), "{half2}", fmt.Sprintf(after[d], half(d, 2)),
		"{half3}", fmt.Sprintf(after[d], half(d, 3)),
	}
}

// argument is a number of microseconds.
func argument(d Dialect, n int) string {
	if d == Postgres {
		return fmt.Sprintf("CAST($%d AS bigint)", n)
	}
	return fmt.Sprintf("$%d", n)
}

func half(d Dialect, n int) string {
	if d == MySQL {
		return fmt.Sprintf("($%d DIV 2)", n)
	}
	return "(" + argument(d, n) + " / 2)"
}

var schemas = map[Dialect][]string{
	Postgres: {
		`CREATE TABLE IF NOT EXISTS {locks} (
	name  text COLLATE "C" PRIMARY KEY,
	owner text,
	token bigint NOT NULL,
	ends  timestamptz NOT NULL
) WITH (fillfactor = 50)`,
		`CREATE TABLE IF NOT EXISTS {queue} (
	id    bigserial PRIMARY KEY,
	name  text COLLATE "C" NOT NULL,
	owner text NOT NULL,
	ends  timestamptz NOT NULL
)`,
		`CREATE INDEX IF NOT EXISTS {place} ON {queue} (name, id)`,
		`CREATE TABLE IF NOT EXISTS {rows} (name text COLLATE "C" PRIMARY KEY)`,
	},
	MySQL: {
		`CREATE TABLE IF NOT EXISTS {locks} (
	name  VARBINARY(255) NOT NULL PRIMARY KEY,
	owner VARBINARY(64),
	token BIGINT NOT NULL,
	ends  DATETIME(6) NOT NULL
) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS {queue} (
	id    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name  VARBINARY(255) NOT NULL,
	owner VARBINARY(64) NOT NULL,
	ends  DATETIME(6) NOT NULL,
	KEY {place} (name, id)
) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS {rows} (name VARBINARY(255) NOT NULL PRIMARY KEY) ENGINE=InnoDB`,
	},
	SQLite: {
		`CREATE TABLE IF NOT EXISTS {locks} (
	name  TEXT NOT NULL PRIMARY KEY,
	owner TEXT,
	token INTEGER NOT NULL,
	ends  INTEGER NOT NULL
) WITHOUT ROWID`,
		`CREATE TABLE IF NOT EXISTS {queue} (
	id    INTEGER PRIMARY KEY AUTOINCREMENT,
	name  TEXT NOT NULL,
	owner TEXT NOT NULL,
	ends  INTEGER NOT NULL
)`,
		`CREATE INDEX IF NOT EXISTS {place} ON {queue} (name, id)`,
		`CREATE TABLE IF NOT EXISTS {rows} (name TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID`,
	},
}

func (n names) schema(d Dialect) []string {
	r := strings.NewReplacer(n.replacements(d)...)
	var all []string
	for _, s := range schemas[d] {
		s = r.Replace(s)
		if schema, _, ok := strings.Cut(n.locks, "."); ok && d == SQLite && strings.HasPrefix(s, "CREATE INDEX") {
			// SQLite has the schema in front of the index, and not of the table.
			s = strings.Replace(s, n.place, schema+"."+n.place, 1)
			s = strings.Replace(s, "ON "+schema+".", "ON ", 1)
		}
		all = append(all, s)
	}
	return all
}

// Schema returns the statements, each ended by a semicolon, that make the tables of a [Table], its queue and a [Row], for those
// who make tables by other means than CreateSchema. table is what [WithTable] has, or "" for [DefaultTable].
func Schema(d Dialect, table string) (string, error) {
	if table == "" {
		table = DefaultTable
	}
	n, err := tableNames(d, table)
	if err != nil {
		return "", err
	}
	return strings.Join(n.schema(d), ";\n") + ";\n", nil
}

// createSchema makes the tables that are not there. Several processes may do so at once.
func (c *core) createSchema(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, max(10*c.timeout, 30*time.Second)) // it may take longer than a request
	defer cancel()
	for _, s := range c.names.schema(c.dialect) {
		for refusals := 0; ; { // PostgreSQL answers with an error to who comes second
			_, err := c.db.ExecContext(ctx, s)
			if err == nil {
				break
			}
			class := c.dialect.classify(err)
			if class != busy {
				refusals++
			}
			if class == unknown || refusals > 5 || !sleep(ctx, jitter(10*time.Millisecond)) {
				return fmt.Errorf("sqllock: creation of the tables of %s: %w", c.table, err)
			}
		}
	}
	return nil
}
