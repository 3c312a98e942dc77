package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

// complaint is the error of a driver that tells the database's code, as that of PostgreSQL or
// of MySQL.
type complaint struct {
	state  string
	Number uint16
}

func (c complaint) Error() string { return fmt.Sprint("no: ", c.state, c.Number) }

func (c complaint) SQLState() string { return c.state }

// complainer is a database that carries nothing out, and says why.
type complainer struct{ why complaint }

func (c complainer) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c complainer) Driver() driver.Driver                        { return nil }
func (c complainer) Prepare(string) (driver.Stmt, error)          { return nil, c.why }
func (c complainer) Close() error                                 { return nil }
func (c complainer) Begin() (driver.Tx, error)                    { return nil, c.why }

func TestTheDatabasesErrorDecidesWhetherACallerWaits(t *testing.T) {
	t.Parallel()
	type meaning struct{ foreign, refused, temporary bool }
	unknown, refused := meaning{temporary: true}, meaning{refused: true}
	later, foreign := meaning{refused: true, temporary: true}, meaning{foreign: true}
	for why, want := range map[complaint]meaning{
		{state: "08006"}: unknown, // connection_failure
		{state: "57P01"}: unknown, // admin_shutdown
		{state: "40003"}: unknown, // statement_completion_unknown
		{state: "25P03"}: unknown, // idle_in_transaction_session_timeout
		{state: "53300"}: later,   // too_many_connections
		{state: "25006"}: later,   // read_only_sql_transaction
		{state: "42501"}: refused, // insufficient_privilege
		{state: "22P05"}: refused, // untranslatable_character
		{state: "42P05"}: refused, // duplicate_prepared_statement
		{state: "28P01"}: refused, // invalid_password
		{state: "42703"}: foreign, // undefined_column
		{state: "23502"}: foreign, // not_null_violation
		{Number: 1053}:   unknown, // server shutdown
		{Number: 1969}:   unknown, // max_statement_time of MariaDB
		{Number: 3024}:   unknown, // max_execution_time of MySQL
		{Number: 4031}:   unknown, // the session was idle for too long
		{Number: 1040}:   later,   // too many connections
		{Number: 1290}:   later,   // read only
		{Number: 1045}:   refused, // access denied
		{Number: 1142}:   refused, // the same, of a table
	} {
		dialect := sqllock.Postgres
		if why.Number != 0 {
			dialect = sqllock.MySQL
		}
		for _, new := range []func(*sql.DB, ...sqllock.Option) (provider, error){
			func(db *sql.DB, opts ...sqllock.Option) (provider, error) { return sqllock.NewTable(db, opts...) },
			func(db *sql.DB, opts ...sqllock.Option) (provider, error) { return sqllock.NewAdvisory(db, opts...) },
		} {
			db := sql.OpenDB(complainer{why})
			c, err := new(db, sqllock.WithDialect(dialect), sqllock.WithLeaseOptions(lease.WithRetry(lease.RetryNever)))
			require.NoError(t, err)
			err = c.Mutex("it").LockContext(background)
			require.ErrorIs(t, err, why)
			got := meaning{foreign: errors.Is(err, locks.ErrForeign), refused: errors.Is(err, lease.ErrRefused)}
			got.temporary = !got.foreign && (!got.refused || errors.Is(err, lease.ErrUnavailable))
			if _, session := c.(*sqllock.Advisory); session || dialect == sqllock.MySQL {
				want.refused = true // the connection is closed; a Table in MySQL looks first
			}
			require.Equal(t, want, got, "%T: %v", c, err)
			require.NoError(t, c.Close(background))
			require.NoError(t, db.Close())
		}
	}
}
