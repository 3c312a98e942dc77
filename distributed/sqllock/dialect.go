package sqllock

import (
	"database/sql"
	"fmt"
	"reflect"
	"strings"
)

// Dialect is a kind of database.
type Dialect int

const (
	// Detect takes the dialect from the type of the database's driver. It knows pgx, lib/pq,
	// go-sql-driver/mysql, and every driver with sqlite in its import path. Any other driver, such
	// as a tracing driver, needs [WithDialect].
	Detect Dialect = iota
	// Postgres is PostgreSQL, 9.6 and later.
	Postgres
	// MySQL is MariaDB, 10.3 and later, and MySQL, 8.0 and later.
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

// detect returns the dialect of db, if detect knows the driver.
func detect(db *sql.DB) (Dialect, error) {
	switch path := driverOf(db); {
	case strings.Contains(path, "sqlite"):
		return SQLite, nil
	case strings.HasPrefix(path, pgxDriver), path == "github.com/lib/pq":
		return Postgres, nil
	case path == "github.com/go-sql-driver/mysql":
		return MySQL, nil
	}
	return 0, fmt.Errorf("sqllock: driver %v tells no dialect: give one by WithDialect", reflect.TypeOf(db.Driver()))
}

// pgxDriver is the beginning of the path of the package that has pgx's driver.
const pgxDriver = "github.com/jackc/pgx/"

// driverOf returns the path of the package that has the driver of db, or "" if db does not tell.
func driverOf(db *sql.DB) string {
	t := reflect.TypeOf(db.Driver())
	if t == nil {
		return ""
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// maxIdentifier is how long a table's name may be, so that a suffix fits into the 63 bytes of
// PostgreSQL.
const maxIdentifier = 48

// identifier returns name, which may have a schema in front, as it is written in a statement.
// identifier allows only ASCII letters, digits and underscores, which need no escapes.
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
	return fmt.Errorf("sqllock: identifier %q: 1 to %d ASCII letters, digits and underscores are allowed, not a digit first, "+
		"and a schema and a dot in front", name, maxIdentifier)
}
