package edge

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/internal/lifecycle"
)

// What a call asks of the authz of these tests, by its token.
const (
	tokenAllow = "Bearer allow" // allowed, also where no operation is
	tokenDeny  = "Bearer deny"  // refused with refusalBody
	tokenHang  = "Bearer hang"  // decided when the caller or Envoy gives up
	tokenBare  = "Bearer bare"  // allowed without saying who the caller is
)

// refusalBody is a refusal as authz makes it; its spaces show whether it is
// passed on untouched.
const refusalBody = `{"rule": "GP-AUTHZ-001",  "message": "not in this app"}`

// identity is what authz tells a backend of the caller.
const identity = "signed-by-authz"

// fakeAuthz decides as the token says; without one, operations are allowed and
// all else is refused, as the real one does.
type fakeAuthz struct {
	authv3.UnimplementedAuthorizationServer
	socket string
	grpc   *grpc.Server
	served chan struct{}

	// ledger, once it is set, decides in place of the token's name.
	ledger atomic.Pointer[ledger]

	mu     sync.Mutex
	checks []*authv3.CheckRequest
}

func startAuthz(t *testing.T, socket string) *fakeAuthz {
	t.Helper()
	a := &fakeAuthz{socket: socket}
	a.start(t)
	t.Cleanup(a.stop)
	return a
}

func (a *fakeAuthz) start(t *testing.T) {
	t.Helper()
	l, err := lifecycle.ListenUnix(a.socket)
	if err != nil {
		t.Fatal(err)
	}
	a.grpc, a.served = grpc.NewServer(), make(chan struct{})
	authv3.RegisterAuthorizationServer(a.grpc, a)
	go func(g *grpc.Server, l net.Listener, done chan struct{}) {
		defer close(done)
		_ = g.Serve(l) // ends with stop
	}(a.grpc, l, a.served)
}

// stop takes authz away, at once.
func (a *fakeAuthz) stop() {
	a.grpc.Stop()
	<-a.served
	_ = os.Remove(a.socket)
}

// last gives the last check for which ok is true.
func (a *fakeAuthz) last(ok func(*authv3.CheckRequest) bool) *authv3.CheckRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.checks) - 1; i >= 0; i-- {
		if ok(a.checks[i]) {
			return a.checks[i]
		}
	}
	return nil
}

// Check decides.
func (a *fakeAuthz) Check(ctx context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	a.mu.Lock()
	a.checks = append(a.checks, r)
	a.mu.Unlock()
	if l := a.ledger.Load(); l != nil {
		return l.decide(r), nil
	}
	op := r.GetAttributes().GetContextExtensions()["op"]
	token := strings.Join(told(r)["authorization"], ",")
	switch {
	case token == tokenHang:
		<-ctx.Done()
		return nil, ctx.Err()
	case token == tokenDeny:
		return deny(typev3.StatusCode_Forbidden, "GP-AUTHZ-001", refusalBody), nil
	case op == "_unmatched" && token != tokenAllow:
		if allowed := r.GetAttributes().GetContextExtensions()["allow"]; allowed != "" {
			return deny(typev3.StatusCode_MethodNotAllowed, "GP-EDGE-405", `{"rule":"GP-EDGE-405"}`, "allow", allowed), nil
		}
		return deny(typev3.StatusCode_NotFound, "GP-EDGE-404", `{"rule":"GP-EDGE-404"}`), nil
	}
	if token == tokenBare {
		return &authv3.CheckResponse{Status: &statuspb.Status{Code: int32(codes.OK)}}, nil
	}
	return allowAs(identity), nil
}

// allowAs allows a call and gives it an identity.
func allowAs(id string) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status:          &statuspb.Status{Code: int32(codes.OK)},
		DynamicMetadata: fields(map[string]string{"decision": "allow", "caller": "system:serviceaccount:shop:reader", "app": "shop", "onBehalfOf": "ada"}),
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: []*corev3.HeaderValueOption{header("x-glidepath-identity", id)},
		}},
	}
}

// told gives the headers that authz was told of a call.
func told(r *authv3.CheckRequest) map[string][]string {
	out := map[string][]string{}
	for _, h := range r.GetAttributes().GetRequest().GetHttp().GetHeaderMap().GetHeaders() {
		out[h.GetKey()] = append(out[h.GetKey()], string(h.GetRawValue()))
	}
	return out
}

func deny(code typev3.StatusCode, rule, body string, extra ...string) *authv3.CheckResponse {
	headers := []*corev3.HeaderValueOption{header("content-type", "application/json")}
	for i := 0; i < len(extra); i += 2 {
		headers = append(headers, header(extra[i], extra[i+1]))
	}
	return &authv3.CheckResponse{
		Status:          &statuspb.Status{Code: int32(codes.PermissionDenied)},
		DynamicMetadata: fields(map[string]string{"decision": "deny", "rule": rule, "error": "refused by authz"}),
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: code}, Body: body, Headers: headers,
		}},
	}
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func fields(values map[string]string) *structpb.Struct {
	out := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, value := range values {
		out.Fields[name] = structpb.NewStringValue(value)
	}
	return out
}
