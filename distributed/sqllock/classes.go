package sqllock

import (
	"errors"
	"reflect"
	"strings"
)

// class is what an error of the database says about the request.
type class int

const (
	// unknown: there was no answer. The request may have been carried out.
	unknown class = iota
	// refused: not carried out.
	refused
	// unavailable: not carried out, for a temporary reason, such as no connection to spare.
	unavailable
	// busy: not carried out because of another transaction. It may be repeated.
	busy
	// missing: there is no such table.
	missing
	// foreign: the table is another one.
	foreign
)

// closed is the text of the error of a closed *sql.DB, which is not exported. Nobody waits for
// such a pool.
const closed = "sql: database is closed"

// classify returns what err says. It knows of the drivers only the methods or fields that hold
// codes.
func (d Dialect) classify(err error) class {
	switch {
	case err == nil:
		return unknown
	case errors.Is(err, errTaken):
		return busy
	case errors.Is(err, errNoCommit), errors.Is(err, errCompletion), errors.Is(err, errEmptyIsNull):
		return refused
	case errors.Is(err, errUnlisted):
		return missing
	case errors.Is(err, errNotUnique), errors.Is(err, errEngine):
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
	// insufficient_privilege; a name that the encoding of the database does not have; a
	// statement that another client of a pooler has prepared
	case "42501", "22021", "22P05", "42P05":
		return refused
	// A setting of the connection is refused: its value, its name, and a name that cannot be one.
	case "22023", "42704", "42602":
		return refused
	case "25006": // read_only_sql_transaction: a standby, or what is one now
		return unavailable
	// statement_completion_unknown; idle_in_transaction_session_timeout and
	// transaction_timeout, which end the session
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

// number returns the number of an error of MySQL: the field Number of the driver's error.
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
	case 1020, 1205, 1213, 3572: // outdated snapshot (MariaDB), lock wait timeout, deadlock, NOWAIT
		return busy
	case 1146: // no such table
		return missing
	case 1054, 1048, 1062, 1136, 1264, 1265, 1292, 1364, 1366, 1406: // columns and values that do not fit
		return foreign
	// too many connections, other lack of resources, read only
	case 1021, 1037, 1038, 1040, 1041, 1047, 1114, 1203, 1226, 1290, 1836:
		return unavailable
	// shutdown, killed, interrupted, a time limit for statements (MySQL 3024, MariaDB 1969), and a
	// session that the server has ended because it was idle (4031)
	case 1053, 1077, 1079, 1080, 1317, 1927, 1969, 3024, 4031:
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
	case code == 19, code == 20,
		has("no such column", "has no column", "ON CONFLICT clause does not match", "constraint failed"):
		return foreign
	case code == 1, code == 8, code == 14: // SQL error, read only, cannot open
		return refused
	}
	return unknown
}
