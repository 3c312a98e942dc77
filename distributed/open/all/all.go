// Package all registers all stores of this repository with package open. Import it for its effect.
// A program with all clients is some 90 MB larger than a program with the clients of Redis.
package all

import (
	_ "github.com/jucgo/locks/distributed/consullock/consulopen"
	_ "github.com/jucgo/locks/distributed/dynamolock/dynamodbopen"
	_ "github.com/jucgo/locks/distributed/etcdlock/etcdopen"
	_ "github.com/jucgo/locks/distributed/filelock/fileopen"
	_ "github.com/jucgo/locks/distributed/gcslock/gsopen"
	_ "github.com/jucgo/locks/distributed/k8slock/kubernetesopen"
	_ "github.com/jucgo/locks/distributed/natslock/natsopen"
	_ "github.com/jucgo/locks/distributed/redislock/redisopen"
	_ "github.com/jucgo/locks/distributed/s3lock/s3open"
	_ "github.com/jucgo/locks/distributed/sqllock/mysqlopen"
	_ "github.com/jucgo/locks/distributed/sqllock/postgresopen"
	_ "github.com/jucgo/locks/distributed/sqllock/sqliteopen"
	_ "github.com/jucgo/locks/distributed/zklock/zkopen"
)
