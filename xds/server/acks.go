package server

import (
	"context"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// servedTypes are the types that an Envoy must have taken before it has the
// whole of a snapshot.
var servedTypes = []string{resourcev3.ClusterType, resourcev3.ListenerType, resourcev3.RouteType}

// acks follows what the Envoys say to what they are sent. It is the callbacks
// of the discovery server, which calls them from a goroutine a stream.
type acks struct {
	accepted func(version string)
	rejected func(version, typeURL, detail string)
	metrics  *Metrics

	mu      sync.Mutex
	streams map[int64]map[string]sent // by stream and type
}

// sent is the last response of a type on a stream.
type sent struct {
	nonce, version string
	acked          bool
}

func newAcks(accepted func(string), rejected func(string, string, string), metrics *Metrics) *acks {
	return &acks{accepted: accepted, rejected: rejected, metrics: metrics, streams: map[int64]map[string]sent{}}
}

// OnDeltaStreamOpen notes a new stream.
func (a *acks) OnDeltaStreamOpen(_ context.Context, id int64, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams[id] = map[string]sent{}
	a.metrics.envoys.Inc()
	return nil
}

// OnDeltaStreamClosed forgets a stream.
func (a *acks) OnDeltaStreamClosed(id int64, _ *corev3.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.streams, id)
	a.metrics.envoys.Dec()
}

// OnStreamDeltaResponse notes what is sent.
func (a *acks) OnStreamDeltaResponse(id int64, _ *discoveryv3.DeltaDiscoveryRequest, resp *discoveryv3.DeltaDiscoveryResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if types := a.streams[id]; types != nil {
		types[resp.GetTypeUrl()] = sent{nonce: resp.GetNonce(), version: resp.GetSystemVersionInfo()}
	}
}

// OnStreamDeltaRequest takes an Envoy's word on the last response of a type:
// a request that names its nonce is one. It never ends the stream.
func (a *acks) OnStreamDeltaRequest(id int64, req *discoveryv3.DeltaDiscoveryRequest) error {
	last, whole, ok := a.take(id, req)
	switch {
	case !ok:
	case req.GetErrorDetail() != nil:
		a.metrics.responses.WithLabelValues("refused").Inc()
		a.rejected(last.version, req.GetTypeUrl(), req.GetErrorDetail().GetMessage())
	default:
		a.metrics.responses.WithLabelValues("taken").Inc()
		if whole {
			a.accepted(last.version)
		}
	}
	return nil
}

// take marks the response that req answers and says whether all types of the
// stream are now taken; ok is false when req answers none.
func (a *acks) take(id int64, req *discoveryv3.DeltaDiscoveryRequest) (last sent, whole, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	types := a.streams[id]
	last, ok = types[req.GetTypeUrl()]
	if !ok || req.GetResponseNonce() == "" || last.nonce != req.GetResponseNonce() {
		return sent{}, false, false
	}
	last.acked = req.GetErrorDetail() == nil
	types[req.GetTypeUrl()] = last
	for _, t := range servedTypes {
		if !types[t].acked {
			return last, false, true
		}
	}
	return last, true, true
}
