package sqllock

import (
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/jucgo/locks/distributed/internal/classes"
)

// Databases have four classes of their own.
const (
	// interrupted: the server has ended the statement, which may have been carried out. The session
	// goes on. After an error of class Doubt the session has ended.
	interrupted = classes.Own + iota
	// busy: not carried out because of another transaction. It may be repeated.
	busy
	// missing: the table does not exist.
	missing
	// foreign: the table is not a table of locks.
	foreign
)

// stateRefusal is a kind of error of PostgreSQL: an SQLSTATE, or the two characters of a class of
// SQLSTATEs.
type stateRefusal struct {
	State string
	Text  string // which the message contains, if the state has several meanings
	Class classes.Class
	Why   string
}

// ofPostgres are the errors of PostgreSQL, and the errors that pgbouncer makes. The first entry
// that fits decides. A state that is not listed refuses the request: a feature is missing, a
// trigger has failed, or the like.
var ofPostgres = []stateRefusal{
	// The connection, and proxies between the client and the server.
	{"08001", "", classes.Moment, "no connection could be made"},
	{"08004", "", classes.Moment, "the server accepts no connection"},
	{"08P01", "no more connections allowed", classes.Moment, "pgbouncer has max_client_conn clients"},
	{"08P01", "max_db_client_connections", classes.Moment, "the same, of a database"},
	{"08P01", "max_user_client_connections", classes.Moment, "the same, of a user"},
	{"08P01", "query_wait_timeout", classes.Moment, "pgbouncer had no server's connection to spare"},
	{"08P01", "cannot connect to server", classes.Moment, "pgbouncer does not reach the server"},
	{"08P01", "server login has been failing", classes.Moment, "pgbouncer waits before it tries the server again"},
	{"08P01", "pause mode", classes.Moment, "pgbouncer is paused"},
	{"08P01", "client_login_timeout", classes.Moment, "pgbouncer had no server's connection for a login"},
	{"08P01", "the database system is ", classes.Moment, "pgbouncer passes on that the server starts or stops"},
	{"08P01", "too many connections", classes.Moment, "pgbouncer passes on that the server is full"},
	{"08P01", "authentication failed", classes.Connection, "pgbouncer does not accept the password or the certificate"},
	{"08P01", "server login failed", classes.Connection, "the server does not accept the password of pgbouncer"},
	{"08P01", "no such user", classes.Connection, "pgbouncer does not know the user"},
	{"08P01", "no such database", classes.Connection, "pgbouncer does not know the database"},
	{"08P01", "is disabled", classes.Connection, "an administrator has disabled the database in pgbouncer"},
	{"08P01", "login rejected", classes.Connection, "pgbouncer admits no such connection"},
	{"08P01", "TLS connection required", classes.Connection, "pgbouncer admits no connection without TLS"},
	{"08P01", "SSL required", classes.Connection, "the same of earlier versions"},
	{"08P01", "unsupported startup parameter", classes.Connection, "pgbouncer does not pass a setting on"},
	{"08P01", "prepared statement", classes.Connection, "a prepared statement is not in this session: a pooler"},
	{"08", "", classes.Unclear, "the connection has failed, and with it the answer"},

	// The credentials, or a default of the login.
	{"0P000", "", classes.Connection, "the role of the connection does not exist"},
	{"28", "", classes.Connection, "the password, the role or the address is not accepted"},
	{"3D000", "", classes.Connection, "there is no such database"},
	{"F0", "", classes.Connection, "the server's configuration cannot be read"},
	{"55P02", "", classes.Connection, "a setting of the connection cannot be changed now"},
	{"22023", "", classes.Connection, "the value of a setting of the connection is refused"},
	{"42704", "", classes.Connection, "there is no such setting of the connection"},
	{"42602", "", classes.Connection, "the name of a setting of the connection is none"},
	{"55000", "not currently accepting connections", classes.Connection, "an administrator has closed the database"},
	{"55000", "cannot connect to invalid database", classes.Connection, "the database was dropped in part"},
	{"42501", "permission denied for database", classes.Connection, "the role may not connect to the database"},
	{"42501", "permission denied to set parameter", classes.Connection, "the role may not have a setting"},
	{"25P02", "", classes.Connection, "a transaction that has failed was left open on the connection"},
	{"26000", "", classes.Connection, "a statement that was prepared is not in this session: a pooler, or DISCARD ALL"},
	{"42P05", "", classes.Connection, "a statement of this name is in this session already: a pooler"},

	// The state of the server.
	{"25006", "", classes.Moment, "the server is a standby, or has become one, or was set to read only"},
	{"53", "", classes.Moment, "connections, memory, or disk space are used up"},
	{"57P03", "", classes.Moment, "the server starts, stops, or recovers"},
	{"57014", "", classes.Moment, "a time limit, or an administrator, has cancelled the statement"},
	{"0A000", "cached plan must not change result type", classes.Moment, "the table was altered"},
	{"57P01", "", classes.Doubt, "an administrator ends the session, or stops the server"},
	{"57P02", "", classes.Doubt, "the server has crashed, and starts anew"},
	{"57P04", "", classes.Doubt, "the database was dropped"},
	{"57P05", "", classes.Doubt, "the session was idle for too long"},
	{"57", "", classes.Doubt, "an operator has intervened"},
	{"25P03", "", classes.Doubt, "the transaction was idle for too long, and the session is over"},
	{"25P04", "", classes.Doubt, "the transaction has lasted for too long, and the session is over"},
	{"40003", "", classes.Unclear, "the server does not know whether the statement was completed"},
	{"58", "", classes.Unclear, "the disk or the system has failed"},
	{"XX", "", classes.Unclear, "an internal error, or damaged data"},
	{"HV", "", classes.Unclear, "the table is on another server, which has not answered"},

	// Other transactions.
	{"40001", "", busy, "serialization failure"},
	{"40P01", "", busy, "deadlock"},
	{"40002", "", foreign, "a constraint that is not ours is checked at the commit"},
	{"40", "", busy, "the transaction was rolled back"},
	{"55P03", "", busy, "another transaction has the row: NOWAIT, or lock_timeout"},
	{"72000", "", busy, "the snapshot is too old"},

	// The tables.
	{"42P01", "", missing, "there is no such table"},
	{"21", "", foreign, "names are not unique"},
	{"22021", "", classes.Request, "the encoding of the database does not have the name"},
	{"22P05", "", classes.Request, "the encoding of the database does not have a character of the name"},
	{"22", "", foreign, "a column does not have our value"},
	{"23", "", foreign, "a constraint that is not ours is violated"},
	{"44", "", foreign, "the table is a view that does not show our row"},
	{"428C9", "", foreign, "a column is generated"},

	// The request itself.
	{"42501", "", classes.Request, "the role lacks a permission"},
	{"42601", "", classes.Request, "the server is too old, or another one, for the statement"},
	{"42622", "", classes.Request, "a name is too long"},
	{"42939", "", classes.Request, "a name is reserved"},
	{"42P04", "", classes.Request, "the database exists"},
	{"42P06", "", classes.Request, "another client has made the schema at the same time"},
	{"42P07", "", classes.Request, "another client has made the table at the same time"},
	{"42710", "", classes.Request, "another client has made the index or the type at the same time"},
	{"42", "", foreign, "columns, types or keys are not ours"},
}

// numberRefusal is a kind of error of MySQL and MariaDB.
type numberRefusal struct {
	Numbers []uint64
	Class   classes.Class
	Why     string
}

// ofMySQL are the errors of MySQL and MariaDB, and the errors that ProxySQL makes. A number that is
// not listed refuses the request: syntax, privileges and limits.
var ofMySQL = []numberRefusal{
	// Logins.
	{[]uint64{1044, 3879}, classes.Connection, "the user has no access to the database"},
	{[]uint64{1045, 1698, 1873, 3118, 3955, 4150, 4151}, classes.Connection, "the login is not accepted"},
	{[]uint64{1046, 1049}, classes.Connection, "there is no such database, or none was named"},
	{[]uint64{1042, 1129, 1130}, classes.Connection, "the client's address is not accepted, or blocked after errors"},
	{[]uint64{1043, 1251, 1275, 1524, 2049, 2059, 2061, 4055}, classes.Connection, "both sides share no way to log in"},
	{[]uint64{1820, 1862}, classes.Connection, "the password has expired"},
	{[]uint64{1759, 3159, 3160}, classes.Connection, "the server admits no connection without TLS"},
	{[]uint64{1115, 1193, 1231, 1232, 1238, 1273, 1298, 1621}, classes.Connection, "a setting is refused"},
	{[]uint64{1243}, classes.Connection, "a statement that was prepared is not in this session: a proxy"},
	{[]uint64{1399, 1568, 1837}, classes.Connection, "a transaction was left open on the connection"},
	{[]uint64{1099, 1100, 1192}, classes.Connection, "LOCK TABLES is in force on the connection"},

	// The state of the server.
	{[]uint64{1040, 1135, 1203, 1226}, classes.Moment, "connections, or a user's share of them, are used up"},
	{[]uint64{1037, 1038, 1041, 1257, 1998, 3015, 3044, 3170, 3950}, classes.Moment, "the memory is full"},
	{[]uint64{1021, 1114, 1197, 1705, 1878, 3019, 3675, 3884, 4139}, classes.Moment, "a disk, table or log is full"},
	{[]uint64{1206, 1461, 1637}, classes.Moment, "locks, prepared statements or transactions are used up"},
	{[]uint64{1036, 1223, 1290, 1792, 1836, 1874, 3989, 4156}, classes.Moment, "server or session is read only"},
	{[]uint64{3032}, classes.Moment, "the server is offline for all but administrators"},
	{[]uint64{1047}, classes.Moment, "a node of Galera is not part of the cluster now"},
	{[]uint64{3092, 3781, 3782, 3783, 3796, 3797, 3799}, classes.Moment, "the group elects, or lacks the member"},
	{[]uint64{3983, 4121}, classes.Moment, "the engine or the thread pool takes no such statement now"},
	{[]uint64{9001}, classes.Moment, "ProxySQL has no connection to a server"},

	// Ends of a session or of a statement.
	{[]uint64{1053, 1077, 1078, 1079, 1080}, classes.Doubt, "the server stops"},
	{[]uint64{1152, 1184, 1927, 3169, 4081, 4082}, classes.Doubt, "the session was killed"},
	{[]uint64{1159, 1161, 4031}, classes.Doubt, "the session was idle for too long"},
	{[]uint64{1028, 1317, 1931, 1969, 3024}, interrupted, "a time limit, or an administrator, has ended the statement"},
	{[]uint64{3100, 3798}, interrupted, "the group has not confirmed the commit"},
	{[]uint64{3101}, busy, "another member has changed the row first"},

	// Failures without an answer about the statement.
	{[]uint64{1030, 1105, 1180, 1181, 1815}, classes.Unclear, "the engine has failed, perhaps in the commit"},
	{[]uint64{1023, 1024, 1026, 1598, 3001}, classes.Unclear, "the disk or the log of the server has failed"},
	{[]uint64{1154, 1155, 1156, 1157, 1158, 1160, 1189, 1190}, classes.Unclear, "the connection has failed"},
	{[]uint64{1429, 1430, 1296, 1297}, classes.Unclear, "the table is on another server, which has failed"},
	{[]uint64{2002, 2003, 2005}, classes.Moment, "a proxy does not reach the server"},
	{[]uint64{2006, 2012, 2013, 2055}, classes.Unclear, "a proxy has lost the connection to the server"},

	// Other transactions.
	{[]uint64{1020}, busy, "the row was changed after the snapshot"},
	{[]uint64{1205, 1689, 3572}, busy, "another transaction has the row, or the table"},
	{[]uint64{1213, 1614, 1613, 3058}, busy, "deadlock"},
	{[]uint64{1412, 1615}, busy, "the table was altered meanwhile"},

	// The tables.
	{[]uint64{1146}, missing, "there is no such table"},
	{[]uint64{1054, 1072, 1109, 1110, 1136}, foreign, "columns are not ours"},
	{[]uint64{1048, 1171, 1263, 1364}, foreign, "a column of another table needs a value"},
	{[]uint64{1062, 1586, 1761, 1762, 1859}, foreign, "another key is unique"},
	{[]uint64{1264, 1265, 1267, 1292, 1366, 1406, 1411, 1525, 1690}, foreign, "a column does not have our value"},
	{[]uint64{1216, 1217, 1451, 1452, 3819, 4025}, foreign, "a constraint that is not ours is violated"},
	{[]uint64{1347, 1348, 1356, 1369, 1394, 1395, 1471}, foreign, "the table is a view"},
	{[]uint64{1906, 3105}, foreign, "a column is generated"},
}

// codeRefusal is a kind of error of SQLite: the lower eight bits of its result code.
type codeRefusal struct {
	Code  int
	Class classes.Class
	Why   string
}

// ofSQLite are the errors of SQLite. A code that is not listed is of a failure without an answer.
var ofSQLite = []codeRefusal{
	{1, classes.Request, "the statement is wrong, or the table, see the text"},
	{3, classes.Request, "the file may not be used so"},
	{4, busy, "the statement was rolled back by another one"},
	{5, busy, "another connection writes"},
	{6, busy, "another statement of the connection writes"},
	{7, classes.Moment, "the memory is full"},
	{8, classes.Request, "the file is read only"},
	{9, interrupted, "the program has interrupted the statement"},
	{11, classes.Request, "the file is damaged"},
	{13, classes.Moment, "the disk is full"},
	{14, classes.Connection, "the file cannot be opened"},
	{15, busy, "too many connections begin at once"},
	{17, busy, "the tables were altered meanwhile"},
	{18, classes.Request, "the value is too big"},
	{19, foreign, "a constraint that is not ours is violated"},
	{20, foreign, "a column has another type"},
	{22, classes.Request, "the file is too large for the system"},
	{23, classes.Request, "the program has forbidden the statement"},
	{25, classes.Request, "the statement has fewer arguments"},
	{26, classes.Connection, "the file is no database, or is encrypted with another key"},
}

// closed is the text of the error of a closed *sql.DB, which is not exported. Nobody waits for
// such a pool.
const closed = "sql: database is closed"

// classify returns the class of err. It knows the drivers only by the methods or fields that hold
// codes.
func (d Dialect) classify(err error) classes.Class {
	switch {
	case err == nil:
		return classes.Unclear
	case errors.Is(err, errTaken):
		return busy
	case errors.As(err, new(*modeError)), errors.Is(err, ErrUnsupportedTopology):
		return classes.Request
	case errors.Is(err, errUnlisted):
		return missing
	case errors.Is(err, errNotUnique), errors.Is(err, errEngine):
		return foreign
	case strings.Contains(err.Error(), closed):
		return classes.Request
	}
	switch d {
	case Postgres:
		var state interface{ SQLState() string }
		if errors.As(err, &state) {
			return classOfState(state.SQLState(), err.Error())
		}
	case MySQL:
		if n, ok := number(err); ok {
			return classOfNumber(n)
		}
	case SQLite:
		return classOfSQLite(err)
	}
	return classOfConnection(err)
}

// ofDrivers are the errors that drivers make by themselves while they log in, without a code. The
// server was asked for nothing yet.
var ofDrivers = classes.Table{
	{"SSL is not enabled on the server", classes.Unreached, "lib/pq is to use TLS, and the server does not"},
	{"TLS requested but server does not support TLS", classes.Unreached, "the same of the driver of MySQL"},
	{"this authentication plugin is not supported", classes.Connection, "the driver of MySQL cannot log in so"},
	{"this user requires clear text authentication", classes.Connection, "the driver of MySQL may not log in this way"},
	{"this user requires mysql native password authentication", classes.Connection, "the same"},
	{"this user requires old password authentication", classes.Connection, "the same as well"},
}

// classOfConnection is classify of an error that is none of the server's.
func classOfConnection(err error) classes.Class {
	var dial *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	if c, ok := ofDrivers.Containing(err.Error()); ok {
		return c
	}
	switch {
	case errors.As(err, &certificate), errors.As(err, &alert):
		return classes.Connection // one side does not accept the certificate of the other side
	case errors.As(err, &name), errors.As(err, &dial) && dial.Op == "dial", notConnected(err):
		return classes.Unreached
	}
	return classes.Unclear
}

// notConnected reports whether err is pgx's error of an attempt to connect.
func notConnected(err error) bool {
	return walk(err, func(err error) bool { return reflect.TypeOf(err).String() == "*pgconn.ConnectError" })
}

// walk calls use for err and all errors that it wraps, until use returns true.
func walk(err error, use func(error) bool) bool {
	if err == nil || use(err) {
		return err != nil
	}
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		return walk(w.Unwrap(), use)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(w.Unwrap(), func(err error) bool { return walk(err, use) })
	}
	return false
}

func classOfState(state, text string) classes.Class {
	if len(state) < 2 {
		return classes.Unclear
	}
	for _, r := range ofPostgres {
		if strings.HasPrefix(state, r.State) && strings.Contains(text, r.Text) {
			return r.Class
		}
	}
	return classes.Request
}

// number returns the number of an error of MySQL: the field Number of the driver's error.
func number(err error) (n uint64, ok bool) {
	ok = field(err, "Number", func(v reflect.Value) bool {
		if v.CanUint() {
			n = v.Uint()
		}
		return v.CanUint()
	})
	return n, ok
}

// field calls use for the field of this name of err, or of an error that it wraps, until use
// returns true.
func field(err error, name string, use func(reflect.Value) bool) bool {
	return walk(err, func(err error) bool {
		v := reflect.ValueOf(err)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return false
		}
		f := v.FieldByName(name)
		return f.IsValid() && use(f)
	})
}

func classOfNumber(n uint64) classes.Class {
	for _, r := range ofMySQL {
		if slices.Contains(r.Numbers, n) {
			return r.Class
		}
	}
	if n >= 2000 && n < 3000 || n >= 9000 && n < 10000 {
		return classes.Unclear // of a client's library, or a proxy: not of the server
	}
	return classes.Request
}

func classOfSQLite(err error) classes.Class {
	code := codeOfSQLite(err)
	text := err.Error()
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case code == -1 && has("database is locked", "table is locked"):
		return busy
	case has("no such table"):
		return missing
	case has("no such column", "has no column", "ON CONFLICT clause does not match", "constraint failed"):
		return foreign
	}
	for _, r := range ofSQLite {
		if r.Code == code {
			return r.Class
		}
	}
	return classes.Unclear
}

// codeOfSQLite returns the result code of an error without its upper bits, or -1. The code is the
// result of the method Code of the driver's error, or the value of its field Code.
func codeOfSQLite(err error) int {
	code := -1
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	field(err, "Code", func(v reflect.Value) bool {
		if v.CanInt() {
			code = int(v.Int()) & 0xff
		}
		return v.CanInt()
	})
	return code
}
