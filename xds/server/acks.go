package server

import (
	"context"
	"maps"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// acks follows what the Envoys say to what they are sent. It is the callbacks
// of the discovery server, which calls them from a goroutine a stream.
type acks struct {
	book    book
	metrics *Metrics

	mu      sync.Mutex
	streams map[int64]*stream
}

// book is told what the Envoys have; see Server.
type book interface {
	// versionOf gives the version of a type of which an Envoy says it has these
	// resources, when that is what is served now.
	versionOf(typeURL string, resources map[string]string) (version string, ok bool)
	// taken is told the versions, by type, that one Envoy has by now.
	taken(versions map[string]string)
	// refused is told of a version of a type that an Envoy does not take.
	refused(typeURL, version, detail string)
}

// stream is one Envoy's.
type stream struct {
	sent map[string]sent   // the last response, by type
	has  map[string]string // the version that the Envoy has, by type
}

type sent struct{ nonce, version string }

func newAcks(b book, metrics *Metrics) *acks {
	return &acks{book: b, metrics: metrics, streams: map[int64]*stream{}}
}

// OnDeltaStreamOpen notes a new stream.
func (a *acks) OnDeltaStreamOpen(_ context.Context, id int64, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams[id] = &stream{sent: map[string]sent{}, has: map[string]string{}}
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
	if s := a.streams[id]; s != nil {
		s.sent[resp.GetTypeUrl()] = sent{nonce: resp.GetNonce(), version: resp.GetSystemVersionInfo()}
	}
}

// OnStreamDeltaRequest takes an Envoy's word on the last response of a type (a
// request that names its nonce is one), or on what it has from before. It
// never ends the stream.
func (a *acks) OnStreamDeltaRequest(id int64, req *discoveryv3.DeltaDiscoveryRequest) error {
	typeURL := req.GetTypeUrl()
	switch last, ok := a.answered(id, req); {
	case ok && req.GetErrorDetail() != nil:
		a.metrics.responses.WithLabelValues("refused").Inc()
		a.book.refused(typeURL, last.version, req.GetErrorDetail().GetMessage())
	case ok:
		a.metrics.responses.WithLabelValues("taken").Inc()
		a.book.taken(a.note(id, typeURL, last.version))
	case len(req.GetInitialResourceVersions()) > 0:
		// Back again after this process was away: what has not changed is not
		// sent again, so there will be no other word on it.
		if version, ok := a.book.versionOf(typeURL, req.GetInitialResourceVersions()); ok {
			a.book.taken(a.note(id, typeURL, version))
		}
	}
	return nil
}

// answered gives the response that a request answers, if it does.
func (a *acks) answered(id int64, req *discoveryv3.DeltaDiscoveryRequest) (sent, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.streams[id]
	if s == nil || req.GetResponseNonce() == "" {
		return sent{}, false
	}
	last, ok := s.sent[req.GetTypeUrl()]
	return last, ok && last.nonce == req.GetResponseNonce()
}

// note writes down what an Envoy has, and gives all that it has.
func (a *acks) note(id int64, typeURL, version string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.streams[id]
	if s == nil {
		return nil
	}
	s.has[typeURL] = version
	return maps.Clone(s.has)
}
