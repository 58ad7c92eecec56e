package translate

import (
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/xds/model"
)

// The names of the filters, by which routes refer to them.
const (
	filterMetadata = "envoy.filters.http.set_metadata"
	filterAudit    = "envoy.filters.http.header_to_metadata"
	filterBody     = "envoy.filters.http.buffer"
	filterExtAuthz = "envoy.filters.http.ext_authz"
	filterRouter   = "envoy.filters.http.router"
)

// httpFilters gives the filters in the one order they run in for a request;
// an answer passes them backwards.
func httpFilters(p *packer, e *model.Edge) []*hcmv3.HttpFilter {
	return []*hcmv3.HttpFilter{
		// Marks streams, also those that are refused.
		filter(p, filterMetadata, setMetadata()),
		// Takes the audit header out of every answer that comes from behind.
		filter(p, filterAudit, auditHeader()),
		// The body before the decision: a body that has grown while a decision
		// was awaited could not be refused any more, only waited for.
		filter(p, filterBody, bodyLimit()),
		filter(p, filterExtAuthz, extAuthz(e)),
		filter(p, filterRouter, &routerv3.Router{SuppressEnvoyHeaders: true}),
	}
}

func filter(p *packer, name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name:       name,
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: p.any(config)},
	}
}
