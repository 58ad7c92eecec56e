package parts

import (
	"context"
	"fmt"
	"net"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// noop allows every call and looks at none: the least that an authorization service can cost an Envoy.
type noop struct {
	authv3.UnimplementedAuthorizationServer
	allow *authv3.CheckResponse
}

// Check allows.
func (n noop) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return n.allow, nil
}

func serveNoop(ctx context.Context, socket string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("allowing everything: %w", err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, noop{allow: &authv3.CheckResponse{Status: &statuspb.Status{Code: int32(codes.OK)}}})
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(l)
}
