package etcdlock

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// DialOptions returns options for the DialOptions of [clientv3.Config], so that holds outlast more
// troubles. The options of a program may follow.
//
//   - A client connects again within about a second. Without the options it waits for up to two
//     minutes, unless a request of this package fails meanwhile.
//   - A client with a password logs in again on servers of version 3.4 when its token has expired,
//     such as after five minutes without a request. Without the options, clients of versions 3.6
//     and 3.7 ask for another token without a pause and without success, until their context ends.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(dropToken),
	}
}

// dropToken makes the client drop its token if a server refuses the token in the request for
// another token. Servers before 3.5 check the token of this request too, and the client sends the
// old one. The client drops its token when a server says that authentication is off. The client
// then sends its request without a token, and the server asks for a token. So the next request for
// a token comes without the old token.
func dropToken(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	if strings.HasSuffix(method, "/Authenticate") && errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
		return rpctypes.ErrGRPCAuthNotEnabled
	}
	return err
}
