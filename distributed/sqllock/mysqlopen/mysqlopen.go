// Package mysqlopen registers mysql: with package open, for MySQL and MariaDB. Import it for its
// effect.
package mysqlopen

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/sqllock/internal/database"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "mysql", Form: "mysql://USER:PASSWORD@HOST:PORT/DATABASE", Port: "3306",
		Kinds: database.Kinds,
		More:  slices.Concat(database.Parameters, driver.Certificate(), []string{"socket", "tls"}),
		Open:  open,

		NoAnswer: func(err error) bool { return errors.Is(err, mysql.ErrInvalidConn) },
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = o.User, o.Password, o.Path
	config.Net, config.Addr, config.Timeout = "tcp", o.Hosts[0], driver.DialTimeout
	config.InterpolateParams = true    // a statement is one round trip, not two
	config.Logger = &mysql.NopLogger{} // what it has to say is in the errors
	if socket, ok := o.Params["socket"]; ok {
		config.Net, config.Addr = "unix", socket
	}
	mode, err := o.OneOf("tls", "false", "true", "skip-verify", "preferred")
	if err != nil {
		return err
	}
	if config.TLS, err = o.TLS(mode != "false"); err != nil {
		return err
	}
	if config.TLS != nil {
		config.TLS.ServerName, _, _ = net.SplitHostPort(o.Hosts[0])
		config.TLS.InsecureSkipVerify = mode != "true" // as the driver does
		config.AllowFallbackToPlaintext = mode == "preferred"
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return driver.Reason("the driver refuses a parameter: %w", o.Hide(err))
	}
	return database.Open(ctx, o, sql.OpenDB(connector), func(err error) bool {
		var answer *mysql.MySQLError
		return errors.As(err, &answer)
	})
}
