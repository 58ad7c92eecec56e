package translate

import (
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

// smallestBody is the bound where no route says another, and the least that
// any route has: Envoy counts the bytes as they arrive, a socket read at a
// time, so a smaller bound would not be a sharp one.
const smallestBody = 16 << 10

// bodyLimit bounds bodies on the routes that say nothing: there is no
// operation behind them.
func bodyLimit() *bufferv3.Buffer {
	return &bufferv3.Buffer{MaxRequestBytes: wrapperspb.UInt32(smallestBody)}
}

// routeBodyLimit bounds the bodies of one operation. A request without a body
// is not held up.
func routeBodyLimit(r model.Route) *bufferv3.BufferPerRoute {
	return &bufferv3.BufferPerRoute{Override: &bufferv3.BufferPerRoute_Buffer{Buffer: &bufferv3.Buffer{
		MaxRequestBytes: wrapperspb.UInt32(max(r.MaxBodyBytes, smallestBody)),
	}}}
}
