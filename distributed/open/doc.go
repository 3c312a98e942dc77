// Package open opens the locks of any store by a URL, such as one from a flag or the environment:
//
//	import _ "github.com/jucgo/locks/distributed/open/all"
//	...
//	store, err := open.URL(ctx, "redis://localhost:6379/0?ttl=10s&kind=fenced")
//	...
//	defer store.Close(context.Background())
//	err = locks.Do(ctx, store.Locker("orders"), func(ctx context.Context) error { ... })
//
// The program does not change with the store. A program that always uses one store, or needs more
// of it than a [locks.Provider], should use the package of that store instead.
//
// A program knows mem and the stores whose packages it imports, as with drivers of database/sql.
// The package of a scheme is called SCHEMEopen, and is part of the adapter's module, so that a
// go.mod lists the clients of these stores only. Below github.com/jucgo/locks/distributed:
//
//	file:                              filelock/fileopen
//	sqlite:                            sqllock/sqliteopen
//	postgres:                          sqllock/postgresopen
//	mysql:                             sqllock/mysqlopen
//	redis: rediss: redis+sentinel:...  redislock/redisopen
//	zk:                                zklock/zkopen
//	etcd:                              etcdlock/etcdopen
//	consul:                            consullock/consulopen
//	nats:                              natslock/natsopen
//	s3:                                s3lock/s3open
//	gs:                                gcslock/gsopen
//	dynamodb:                          dynamolock/dynamodbopen
//	kubernetes:                        k8slock/kubernetesopen
//	all of them                        open/all, a module of its own
//
// Without the import, [URL] returns an error that names the package. Package open/driver is for
// authors of further stores.
//
// # URLs
//
//	mem:                                              the memory of this process
//	file:/run/lock/shop                               a directory
//	sqlite:/var/lib/shop.db                           a file
//	postgres://USER:PASSWORD@HOST:5432/DATABASE       also postgresql:
//	mysql://USER:PASSWORD@HOST:3306/DATABASE          also MariaDB
//	redis://USER:PASSWORD@HOST:6379/0                 one server
//	rediss://USER:PASSWORD@HOST:6379/0                one server, with TLS
//	redis+sentinel://HOST1:26379,HOST2:26379/0        the master behind sentinels
//	redis+cluster://HOST1:6379,HOST2:6379             a cluster
//	zk://HOST1:2181,HOST2:2181/NAMESPACE              ZooKeeper
//	etcd://HOST1:2379,HOST2:2379                      etcd
//	consul://:TOKEN@HOST:8500/PREFIX                  an agent of Consul
//	nats://HOST1:4222,HOST2:4222/BUCKET               a key-value bucket of NATS JetStream
//	s3://ACCESSKEY:SECRET@BUCKET/PREFIX               S3, and stores with its interface
//	gs://BUCKET/PREFIX                                Google Cloud Storage
//	dynamodb://REGION/TABLE                           DynamoDB, with the keys of the environment
//	dynamodb://KEY:SECRET@HOST:8000/TABLE             another server that talks as DynamoDB does
//	kubernetes:NAMESPACE                              Lease objects of Kubernetes
//
// An empty host is localhost, and every port has the default above. The characters @ / ? # % in a
// user or a password are written as %40 %2F %3F %23 %25, and so are @ # % everywhere else. A path
// without a leading slash, as in file:locks, is relative to the working directory. Its folder is
// made if the folder above exists. A ~ at its start is refused, because only a shell expands it.
//
// # Parameters
//
// Parameters follow a question mark, and are separated by &. An unknown one is an error. A duration
// has a unit, such as ttl=30s. A number alone means seconds.
//
//	kind      the kind of lock, see below                            all
//	ttl       how long a hold lasts without renewal                  all but mem and file
//	label     the name of this process in Inspect                    all but mem and file
//	prefix    the beginning of all lock names in the store           redis..., etcd, dynamodb
//	table     the name of the table, sql_locks if not given          sqlite, postgres, mysql
//	create    false: do not create missing tables                    sqlite, postgres, mysql
//	create    true: create the table if it is missing                dynamodb
//	region    the region of the keys, us-east-1 if not given         dynamodb at a host
//	partition_key   the attribute, "name" if not given               dynamodb
//	listen    false: do not wake waiters by notifications            postgres
//	perm      permissions of new files, 0644 if not given            file
//	master    the name of the master, required                       redis+sentinel
//	sentinel_user, sentinel_password                                 redis+sentinel
//	tls       true: use TLS, which is off if not given               redis+... zk etcd mysql nats
//	                                                                 consul, dynamodb at a host
//	region    the region, AWS_REGION if not given                    s3
//	endpoint  the URL of a store other than Amazon's                 s3
//	endpoint  the URL of a server for tests, without credentials     gs
//	probe     false: do not ask whether the store is safe            s3
//	cacert    a file with the certificates of the authorities        with TLS
//	cert, key files with the certificate and key of this client      with TLS
//	socket    a Unix socket in place of the host                     mysql, redis
//	lockdelay how long Consul keeps a lock whose session has ended   consul
//	replicas  1, 3 or 5: create the bucket if it is missing          nats
//	creds     a file with the credentials of a user                  nats
//	inbox     the beginning of the subjects of answers               nats
//	kubeconfig, context                                              kubernetes
//
// If the URL lacks credentials of S3, the client uses the credentials of the AWS CLI, from its
// environment and files, or the credentials of the machine. The prefix is locks if not given. See
// package s3lock for the probe.
//
// Settings that a URL of Consul lacks are in the environment, such as CONSUL_HTTP_TOKEN. The prefix
// is locks if not given. A ttl is at least session_ttl_min of the servers, 10s by default.
//
// The credentials of gs are Google's Application Default Credentials. With the parameter endpoint
// or the variable STORAGE_EMULATOR_HOST there are none. The prefix is locks if not given.
//
// PostgreSQL has the parameters of its own clients instead of the parameters for TLS: sslmode,
// sslrootcert, sslcert, sslkey, sslpassword, sslsni, host, port, user, password, dbname, passfile,
// connect_timeout, application_name, target_session_attrs, search_path and options. Three
// parameters of pgx go to that driver: default_query_exec_mode, statement_cache_capacity and
// description_cache_capacity. A pooler that gives each transaction another session, such as
// pgbouncer in transaction mode, needs listen=false and the kind table or queue. Without a mode,
// listen=false means default_query_exec_mode=exec: no statement is prepared. Such a pooler passes
// on no search_path and no options: name the schema by table=SCHEMA.TABLE. A search_path that the
// server did not get is refused.
//
// kubernetes takes the address and the user from the kubeconfig file of the parameter or of the
// environment (KUBECONFIG, ~/.kube/config). Without a kubeconfig file, it takes the address and the
// user of the pod in which the program runs. The parameter context names a context of the file.
//
// # Kinds
//
// The first kind of each line is the default.
//
//	mem               plain, fair
//	file              plain, fenced                 fenced: with tokens, see filelock.WithTokens
//	sqlite            table, queue                  queue: a table in order of arrival
//	postgres, mysql   table, queue, advisory
//	redis...          plain, fenced, fair, simple   fenced and fair are Redisson's
//	zk                mutex, semaphore              both are Curator's
//	etcd              mutex
//	consul            mutex
//	nats              mutex
//	s3                mutex
//	gs                mutex
//	dynamodb          mutex
//	kubernetes        mutex
//
// # Secrets
//
// The user and the password of a URL, and parameters such as password, are in no error of this
// package, and neither is the text of a driver's error that contains them. [Client.String] has none
// of them either. Later errors of locks come from the adapter. They contain no password. A database
// may put the name of the user into them.
package open
