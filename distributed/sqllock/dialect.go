package sqllock

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Dialect is a kind of database.
type Dialect int

const (
	// Detect takes the dialect from the type of the database's driver: those of pgx and lib/pq, go-sql-driver/mysql, and
	// every one with sqlite in its import path. Any other one, such as one that traces, needs [WithDialect].
	Detect Dialect = iota
	// Postgres is PostgreSQL, 9.6 and later.
	Postgres
	// MySQL is MySQL, 8.0 and later, and MariaDB, 10.3 and later.
	MySQL
	// SQLite is SQLite, 3.35 and later.
	SQLite
)

// String returns the name of the database.
func (d Dialect) String() string {
	switch d {
	case Detect:
		return "detect"
	case Postgres:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// detect returns the dialect of db, if it can be told from its driver.
func detect(db *sql.DB) (Dialect, error) {
	t := reflect.TypeOf(db.Driver())
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch path := t.PkgPath(); {
	case strings.Contains(path, "sqlite"):
		return SQLite, nil
	case strings.HasPrefix(path, "github.com/jackc/pgx/"), path == "github.com/lib/pq":
		return Postgres, nil
	case path == "github.com/go-sql-driver/mysql":
		return MySQL, nil
	}
	return 0, fmt.Errorf("sqllock: the driver %v tells no dialect: WithDialect is needed", t)
}

// maxIdentifier is how long a table's name may be, so that what is put behind it fits into the 63 bytes of PostgreSQL.
const maxIdentifier = 48

// identifier returns name, which may have a schema in front, as it is written in a statement. Only ASCII letters, digits and
// underscores are let through, so that nothing has to be escaped.
func (d Dialect) identifier(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", badIdentifier(name)
	}
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	for i, part := range parts {
		if part == "" || len(part) > maxIdentifier {
			return "", badIdentifier(name)
		}
		for j, c := range []byte(part) {
			letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
			if !letter && (j == 0 || c < '0' || c > '9') {
				return "", badIdentifier(name)
			}
		}
		parts[i] = mark + part + mark
	}
	return strings.Join(parts, "."), nil
}

func badIdentifier(name string) error {
	if len(name) > 2*maxIdentifier {
		name = name[:2*maxIdentifier] + "..."
	}
	return fmt.Errorf("sqllock: %q is no identifier: up to %d ASCII letters, digits and underscores, no digit first, are one; "+
		"a schema and a dot may be in front", name, maxIdentifier)
}

// statement is one statement in a dialect. In a template, $1 and so on are its arguments, in any order and number.
type statement struct {
	text  string
	order []int // of the arguments, if they are to be repeated
}

func (d Dialect) statement(template string, replacements ...string) *statement {
	text := strings.NewReplacer(replacements...).Replace(template)
	if d == Postgres {
		return &statement{text: text}
	}
	s := &statement{}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			s.text = b.String()
			return s
		}
		digits := 0
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		b.WriteByte('?')
		if d == SQLite {
			b.WriteString(rest[:digits])
		} else {
			n, _ := strconv.Atoi(rest[:digits])
			s.order = append(s.order, n-1)
		}
		text = rest[digits:]
	}
}

func (s *statement) args(args []any) []any {
	if s.order == nil {
		return args
	}
	ordered := make([]any, len(s.order))
	for i, n := range s.order {
		ordered[i] = args[n]
	}
	return ordered
}

// Of the clock. Ends of leases are written and compared by the database's clock alone. A statement takes the time when it
// begins or later, and so not before the client has sent it.
var (
	// now is the present.
	now = map[Dialect]string{
		Postgres: `clock_timestamp()`,
		MySQL:    `UTC_TIMESTAMP(6)`,
		SQLite:   `CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`,
	}
	// after is %s microseconds from now. SQLite counts milliseconds, of which the present one may be almost over.
	after = map[Dialect]string{
		Postgres: `(clock_timestamp() + %s * interval '1 microsecond')`,
		MySQL:    `(UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)`,
		SQLite:   `(` + now[SQLite] + ` + (%s + 999) / 1000 + 1)`,
	}
	// until is how many microseconds there are until ends.
	until = map[Dialect]string{
		Postgres: `CAST(extract(epoch FROM l.ends - clock_timestamp()) * 1000000 AS bigint)`,
		MySQL:    `TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.ends)`,
		SQLite:   `((l.ends - ` + now[SQLite] + `) * 1000)`,
	}
)

// class is what an error of the database says about the request.
type class int

const (
	// unknown: there was no answer. The request may have been carried out.
	unknown class = iota
	// refused: not carried out.
	refused
	// unavailable: not carried out, for a reason that is expected to pass, such as no connection to spare.
	unavailable
	// busy: not carried out because of somebody else's transaction. It may be repeated.
	busy
	// missing: there is no such table.
	missing
	// foreign: the table is another one.
	foreign
)

// closed is what the error of a *sql.DB says that its user has closed, which nobody waits for. It is no error that could be compared.
const closed = "sql: database is closed"

// classify returns what err says. Of the drivers it knows only by which methods or fields they tell codes.
func (d Dialect) classify(err error) class {
	switch {
	case err == nil:
		return unknown
	case errors.Is(err, errTaken):
		return busy
	case errors.Is(err, errNoCommit):
		return refused
	case errors.Is(err, errNotUnique):
		return foreign
	case strings.Contains(err.Error(), closed):
		return refused
	}
	switch d {
	case Postgres:
		var state interface{ SQLState() string }
		if errors.As(err, &state) {
			return classOfState(state.SQLState())
		}
	case MySQL:
		if n, ok := number(err); ok {
			return classOfNumber(n)
		}
	case SQLite:
		return classOfSQLite(err)
	}
	return unknown
}

func classOfState(state string) class {
	switch state {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return busy
	case "42P01": // undefined_table
		return missing
	// insufficient_privilege; a name that the encoding of the database does not have; a statement that, behind a pooler, somebody else
	// has prepared
	case "42501", "22021", "22P05", "42P05":
		return refused
	case "25006": // read_only_sql_transaction: a standby, or what is one now
		return unavailable
	// statement_completion_unknown; idle_in_transaction_session_timeout and transaction_timeout, which end the session
	case "40003", "25P03", "25P04":
		return unknown
	}
	switch {
	case len(state) < 2:
		return unknown
	case state[:2] == "53":
		return unavailable // too many connections, and other lack of resources
	case state[:2] == "08", state[:2] == "57", state[:2] == "58", state[:2] == "XX":
		return unknown // connection, shutdown, input and output, internal error
	case state[:2] == "22", state[:2] == "23", state[:2] == "42":
		return foreign // the values, constraints and columns that are ours do not fit
	}
	return refused
}

// number returns the number of an error of MySQL: the field Number of the error that the driver makes.
func number(err error) (n uint64, ok bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		if f := v.FieldByName("Number"); f.IsValid() && f.CanUint() {
			return f.Uint(), true
		}
	}
	return 0, false
}

func classOfNumber(n uint64) class {
	switch n {
	case 1020, 1205, 1213, 3572: // snapshot that is out of date (MariaDB), lock wait timeout, deadlock, NOWAIT
		return busy
	case 1146: // no such table
		return missing
	case 1054, 1048, 1062, 1136, 1264, 1265, 1292, 1364, 1366, 1406: // columns and values that do not fit
		return foreign
	case 1021, 1037, 1038, 1040, 1041, 1047, 1114, 1203, 1226, 1290, 1836: // too many connections, other lack of resources, read only
		return unavailable
	case 1053, 1077, 1079, 1080, 1317, 1927, 3024: // shutdown, killed, interrupted
		return unknown
	}
	return refused
}

func classOfSQLite(err error) class {
	code := -1
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		code = coded.Code() & 0xff
	}
	text := err.Error()
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case code == 5, code == 6, code == -1 && has("database is locked", "table is locked"):
		return busy
	case has("no such table"):
		return missing
	case code == 19, code == 20, has("no such column", "has no column", "ON CONFLICT clause does not match", "constraint failed"):
		return foreign
	case code == 1, code == 8, code == 14: // SQL error, read only, cannot open
		return refused
	}
	return unknown
}
