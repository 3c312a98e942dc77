package sqllock_test

import "github.com/jucgo/locks/distributed/internal/testbed"

var roles = map[string]testbed.Role{}
