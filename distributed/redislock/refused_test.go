package redislock

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// The texts come from Redis 6.2.5 and 7.0.15.
func TestErrorsOfScriptsAreUnderstoodOnAllVersions(t *testing.T) {
	const call = "ERR Error running script (call to f_052077b0de5bb4159ecb0d2992f41d627e80e8e5): @user_script:12: "
	for text, want := range map[string]error{
		"READONLY You can't write against a read only replica. script: 0102, on @user_script:1.": lease.ErrUnavailable,
		call + "@user_script: 12: -READONLY You can't write against a read only replica.":        lease.ErrUnavailable,
		"@user_script: 7: -READONLY You can't write against a read only replica.":                lease.ErrUnavailable,
		call + "@user_script: 12: -MISCONF Redis is configured to save RDB snapshots":            lease.ErrUnavailable,
		"MISCONF Redis is configured to save RDB snapshots":                                      lease.ErrUnavailable,
		call + "WRONGTYPE Operation against a key holding the wrong kind of value":               locks.ErrForeign,
		call + "ERR value is not an integer or out of range":                                     locks.ErrForeign,
		"MOVED 866 127.0.0.1:7000": redisport.ErrCluster,
		call + "@user_script: 12: The user executing the script can't run this command":            lease.ErrRefused,
		call + "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.":        lease.ErrUnavailable,
		"OOM command not allowed when used memory > 'maxmemory'. script: 0102, on @user_script:1.": lease.ErrUnavailable,
		call + "@user_script:1: Script killed by user with SCRIPT KILL...":                         lease.ErrUnavailable,
		"ERR max number of clients reached":                                                        lease.ErrUnavailable,
		"ERR max number of clients + cluster connections reached":                                  lease.ErrUnavailable,
		"WRONGPASS invalid username-password pair or user is disabled.":                            lease.ErrLogin,
		"ERR AUTH <password> called without any password configured for the default user.":         lease.ErrLogin,
		"ERR DB index is out of range":                                                             lease.ErrLogin,
		"ERR unknown command 'EVAL'":                                                               lease.ErrRefused,
		"SOMETHING that nobody knows":                                                              lease.ErrRefused,
	} {
		err := redisport.Refused(text, false, errors.New(text))
		require.ErrorIs(t, err, want)
		require.Equal(t, want == lease.ErrUnavailable, errors.Is(err, lease.ErrUnavailable), text)
	}
}
