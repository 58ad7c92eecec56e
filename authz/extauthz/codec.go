package extauthz

import (
	"context"
	"errors"
	"fmt"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of all other messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// answer is a CheckResponse as it goes out: made once, however many calls get
// it. It does not change.
type answer []byte

func encode(resp *authv3.CheckResponse) (answer, error) {
	raw, err := proto.Marshal(resp)
	if err != nil {
		return nil, fmt.Errorf("writing the answer to a check: %w", err)
	}
	return raw, nil
}

// service is the Authorization service with its method in our own forms: the
// generated one would make and drop a message for each of them.
var service = grpc.ServiceDesc{
	ServiceName: authv3.Authorization_ServiceDesc.ServiceName,
	HandlerType: (*checker)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Check",
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			c := new(call)
			if err := decode(c); err != nil {
				return nil, err
			}
			s, ok := srv.(checker)
			if !ok {
				return nil, errors.New("not a server of checks")
			}
			return s.check(ctx, c)
		},
	}},
	Metadata: authv3.Authorization_ServiceDesc.Metadata,
}

type checker interface {
	check(ctx context.Context, c *call) (answer, error)
}

// codec reads calls and writes answers in their own forms, and everything else,
// such as the health service's messages, as gRPC does.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal writes a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(answer); ok {
		return mem.BufferSlice{mem.SliceBuffer(a)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal reads a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*call)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free() // a call holds copies
	return to.parse(whole.ReadOnlyData())
}
