package sqllock

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// The statements of all dialects stand in one file, and the statements of one dialect in a file of
// its own. A title begins each of them: "-- name: release". $1 and so on are its arguments, in any
// order and number. {locks}, {queue}, {rows}, {clients}, {permits} and {semaphores} are the tables.
//
//go:embed *.sql
var files embed.FS

var templates = map[Dialect]map[string]string{
	Postgres: parse("postgres.sql"),
	MySQL:    parse("mysql.sql"),
	SQLite:   parse("sqlite.sql"),
}

// parse returns the statements by their titles. A statement in file replaces the statement of all
// dialects with the same title.
func parse(file string) map[string]string {
	all := make(map[string]string)
	for _, name := range []string{"common.sql", file} {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		title := ""
		for line := range strings.Lines(string(text)) {
			if next, ok := strings.CutPrefix(line, "-- name: "); ok {
				title = strings.TrimSpace(next)
				all[title] = ""
			} else if !strings.HasPrefix(line, "--") && title != "" {
				all[title] += line
			}
		}
	}
	for title, text := range all {
		all[title] = strings.TrimSpace(text)
	}
	return all
}

// nowInSQLite is the present in milliseconds.
const nowInSQLite = `CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`

// words replace the marks of time and locking in the statements of all dialects.
var words = map[Dialect][]string{
	Postgres: {
		"{now}", "clock_timestamp()",
		"{after $1}", "clock_timestamp() + CAST($1 AS bigint) * interval '1 microsecond'",
		"{after $3}", "clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond'",
		"{after $4}", "clock_timestamp() + CAST($4 AS bigint) * interval '1 microsecond'",
		"{left}", "CAST(extract(epoch FROM ends - clock_timestamp()) * 1000000 AS bigint)",
		"{l.left}", "CAST(extract(epoch FROM l.ends - clock_timestamp()) * 1000000 AS bigint)",
		"{for update}", "FOR UPDATE",
	},
	MySQL: {
		"{modes}", modesOfMySQL,
		"{now}", "UTC_TIMESTAMP(6)",
		"{after $1}", "UTC_TIMESTAMP(6) + INTERVAL $1 MICROSECOND",
		"{after $3}", "UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND",
		"{left}", "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ends)",
		"{l.left}", "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.ends)",
		"{for update}", "FOR UPDATE",
	},
	SQLite: {
		"{now}", nowInSQLite,
		"{after $1}", nowInSQLite + " + ($1 + 999) / 1000 + 1",
		"{after $3}", nowInSQLite + " + ($3 + 999) / 1000 + 1",
		"{left}", "(ends - " + nowInSQLite + ") * 1000",
		"{l.left}", "(l.ends - " + nowInSQLite + ") * 1000",
		"{for update}", "",
	},
}

// statement is one statement in a dialect.
type statement struct {
	text  string
	order []int // of its arguments; it may repeat them
}

// statement returns the statement of this title, with the tables' names and the replacements
// put in.
func (c *core) statement(title string, replacements ...string) *statement {
	return c.dialect.statement(templates[c.dialect][title], append(replacements, c.names.replacements()...)...)
}

// statement returns the template with its arguments marked as the dialect marks them: by $1 in
// PostgreSQL, by ?1 in SQLite, and by ? in MySQL.
func (d Dialect) statement(template string, replacements ...string) *statement {
	text := strings.NewReplacer(append(replacements, words[d]...)...).Replace(template)
	s := &statement{}
	var b strings.Builder
	most := 0
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			break
		}
		digits := 0
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		n, _ := strconv.Atoi(rest[:digits])
		switch d {
		case Postgres:
			b.WriteString("$" + rest[:digits])
		case SQLite:
			b.WriteString("?" + rest[:digits])
		default:
			b.WriteByte('?')
			s.order = append(s.order, n-1)
		}
		most = max(most, n)
		text = rest[digits:]
	}
	s.text = b.String()
	if d != MySQL {
		for i := range most {
			s.order = append(s.order, i)
		}
	}
	return s
}

// args returns the arguments that the statement uses, in its order.
func (s *statement) args(args []any) []any {
	ordered := make([]any, len(s.order))
	for i, n := range s.order {
		ordered[i] = args[n]
	}
	return ordered
}

// database is a pool, a connection or a transaction.
type database interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// exec carries the statement out, and returns how many rows it has affected.
func (s *statement) exec(ctx context.Context, on database, args ...any) (int64, error) {
	r, err := on.ExecContext(ctx, s.text, s.args(args)...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query reads the row that the statement selects into dest.
func (s *statement) query(ctx context.Context, on database, args []any, dest ...any) error {
	return on.QueryRowContext(ctx, s.text, s.args(args)...).Scan(dest...)
}

// names are the names of the tables, as they are written in statements.
type names struct {
	locks, queue, rows  string
	clients             string // their identities
	permits, semaphores string
	index, indexed      string // the queue's index and the queue
	channel             string // of notifications
}

func tableNames(d Dialect, table string) (n names, err error) {
	if d != Postgres && d != MySQL && d != SQLite {
		return n, fmt.Errorf("sqllock: dialect %v is none of Postgres, MySQL and SQLite", d)
	}
	if n.locks, err = d.identifier(table); err != nil {
		return n, err
	}
	quote := n.locks[len(n.locks)-1:]
	behind := func(suffix string) string { return strings.TrimSuffix(n.locks, quote) + suffix + quote }
	n.queue, n.rows, n.clients = behind("_queue"), behind("_rows"), behind("_clients")
	n.permits, n.semaphores = behind("_permits"), behind("_semaphores")
	n.channel = table[strings.LastIndexByte(table, '.')+1:]
	n.index, n.indexed = quote+n.channel+"_place"+quote, n.queue
	if d == SQLite { // which has the schema in front of the index, and not of the table
		n.index, n.indexed = behind("_place"), quote+n.channel+"_queue"+quote
	}
	return n, nil
}

func (n names) replacements() []string {
	return []string{
		"{locks}", n.locks, "{queue}", n.queue, "{rows}", n.rows, "{clients}", n.clients,
		"{permits}", n.permits, "{semaphores}", n.semaphores, "{index}", n.index, "{indexed}", n.indexed,
	}
}

// schema returns the statements that make the tables, each ended by a semicolon but the last.
func (n names) schema(d Dialect) string {
	return strings.NewReplacer(n.replacements()...).Replace(templates[d]["schema"])
}

// Schema returns the statements, each ended by a semicolon, that make all tables: of a [Table], of
// its queue and semaphores, and of a [Row]. It is for programs that make tables by other means than
// CreateSchema. The argument table is as for [WithTable], or "" for [DefaultTable].
func Schema(d Dialect, table string) (string, error) {
	if table == "" {
		table = DefaultTable
	}
	n, err := tableNames(d, table)
	if err != nil {
		return "", err
	}
	return n.schema(d) + ";\n", nil
}

// createSchema makes the tables that are missing. Several processes may call it at once.
func (c *core) createSchema(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	limited, cancel := context.WithTimeout(ctx, max(10*c.timeout, 30*time.Second)) // it may take longer than a request
	defer cancel()
	for s := range strings.SplitSeq(c.names.schema(c.dialect), ";\n") {
		for refusals := 0; ; { // PostgreSQL answers the second of two processes with an error
			_, err := c.db.ExecContext(limited, s)
			if err == nil {
				break
			}
			class := c.dialect.classify(err)
			if class != busy {
				refusals++
			}
			unanswered := class == classes.Unclear || class == classes.Doubt || class == interrupted
			if unanswered || refusals > 5 || !adapter.Sleep(limited, adapter.Jitter(10*time.Millisecond)) {
				return fmt.Errorf("sqllock: create tables of %q: %w", c.table, adapter.OfStore(ctx, err))
			}
		}
	}
	return nil
}
