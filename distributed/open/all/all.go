// Package all registers all stores with package open. Import it for its effect. A program with all
// clients is some 90 MB larger than one with those of Redis.
package all

import (
	_ "github.com/jucgo/locks/distributed/open/consul"
	_ "github.com/jucgo/locks/distributed/open/dynamodb"
	_ "github.com/jucgo/locks/distributed/open/etcd"
	_ "github.com/jucgo/locks/distributed/open/file"
	_ "github.com/jucgo/locks/distributed/open/gcs"
	_ "github.com/jucgo/locks/distributed/open/kubernetes"
	_ "github.com/jucgo/locks/distributed/open/mysql"
	_ "github.com/jucgo/locks/distributed/open/nats"
	_ "github.com/jucgo/locks/distributed/open/postgres"
	_ "github.com/jucgo/locks/distributed/open/redis"
	_ "github.com/jucgo/locks/distributed/open/s3"
	_ "github.com/jucgo/locks/distributed/open/sqlite"
	_ "github.com/jucgo/locks/distributed/open/zookeeper"
)
