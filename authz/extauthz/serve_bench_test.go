package extauthz_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// BenchmarkServed is what a cached check costs on the socket, as Envoy sends
// it, beside a service that allows everything: cpu-us/op is of both ends, and
// the client's end is the same for both.
func BenchmarkServed(b *testing.B) {
	const allOfThem = 32
	tok := longToken("reader")
	req := asEnvoySends(b, request("listLive", "GET", "/v1/apps/shop/live", nil), tok)
	for name, start := range map[string]func(testing.TB, net.Listener, string){
		"everything is allowed": serveNoop,
		"cached read":           serveStack,
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				b.Fatal(err)
			}
			start(b, l, tok)
			conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asItIs{})))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() })
			var calls sync.WaitGroup
			began := cpu()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range allOfThem {
				calls.Go(func() {
					for n := i; n < b.N; n += allOfThem {
						var out []byte
						if err := conn.Invoke(b.Context(), authv3.Authorization_Check_FullMethodName, req, &out); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			calls.Wait()
			b.ReportMetric(float64((cpu()-began).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
		})
	}
}

// asEnvoySends gives a check with all that Envoy puts into one.
func asEnvoySends(t testing.TB, r *authv3.CheckRequest, token string) []byte {
	peer := func(port uint32) *authv3.AttributeContext_Peer {
		return &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}}}
	}
	a := r.GetAttributes()
	a.Source, a.Destination = peer(40000), peer(8080)
	h := a.GetRequest().GetHttp()
	a.Request.Time = timestamppb.New(time.Unix(1, 0))
	h.Id, h.Host, h.Scheme, h.Protocol, h.Size, h.Headers = "1234567890123456789", "127.0.0.1:8080", "http", "HTTP/1.1", -1, nil
	h.HeaderMap = &corev3.HeaderMap{}
	for _, f := range [][2]string{
		{":path", h.GetPath()}, {":method", h.GetMethod()}, {"authorization", "Bearer " + token}, {"x-request-id", "28616f65-5bd0-9bee-ac40-b30918537aae"},
	} {
		h.HeaderMap.Headers = append(h.HeaderMap.Headers, &corev3.HeaderValue{Key: f[0], RawValue: []byte(f[1])})
	}
	a.MetadataContext, a.RouteMetadataContext = &corev3.Metadata{}, &corev3.Metadata{}
	return wire(t, r)
}

func serveNoop(t testing.TB, l net.Listener, _ string) {
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, noop{})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}

type noop struct {
	authv3.UnimplementedAuthorizationServer
}

var allowed = &authv3.CheckResponse{Status: &statuspb.Status{}}

func (noop) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return allowed, nil
}

func serveStack(t testing.TB, l net.Listener, tok string) {
	e, s := newStack(t)
	s.AcceptUser(tok, "reader", "system:serviceaccounts", "system:serviceaccounts:team")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(l, nil)(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// asItIs passes bytes through.
type asItIs struct{}

func (asItIs) Name() string { return "proto" }

func (asItIs) Marshal(v any) (mem.BufferSlice, error) {
	raw, ok := v.([]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
}

func (asItIs) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return errors.New("not bytes")
	}
	*to = data.Materialize()
	return nil
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
