package translate

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

func connectionManager(p *packer, e *model.Edge, name string) *hcmv3.HttpConnectionManager {
	l := e.Limits
	return &hcmv3.HttpConnectionManager{
		CodecType:  hcmv3.HttpConnectionManager_AUTO,
		StatPrefix: name,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: name,
			ConfigSource:    adsSource(),
		}},
		HttpFilters: httpFilters(p, e),

		// Who the caller is at the other end is what the connection says, and
		// no address makes a caller internal: x-envoy-* of anyone is noise.
		UseRemoteAddress:      wrapperspb.Bool(true),
		XffNumTrustedHops:     0,
		InternalAddressConfig: noInternalAddress(),

		// One spelling a path, before anything looks at it. An escaped slash
		// stays what it is: a route refuses it with every other escape, and
		// with an answer that Envoy could not give before there is a route.
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_KEEP_UNCHANGED,

		EarlyHeaderMutationExtensions: earlyHeaders(p),
		RequestIdExtension:            requestID(p),
		Tracing:                       tracing(p, e.Tracing),
		LocalReplyConfig:              localReplies(p, e.Replies),
		AccessLog:                     append(auditLogs(p, e.Routes), counters(p)...),
		// The beginning of a call is for the gauge of calls under way alone:
		// everything else is for its end.
		AccessLogOptions: &hcmv3.HttpConnectionManager_HcmAccessLogOptions{FlushAccessLogOnNewRequest: true},

		// The answer does not say what made it.
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,

		MaxRequestHeadersKb:   wrapperspb.UInt32(l.MaxHeadersKiB),
		RequestHeadersTimeout: durationpb.New(l.HeadersTimeout),
		RequestTimeout:        durationpb.New(l.RequestTimeout),
		StreamIdleTimeout:     durationpb.New(l.IdleTimeout),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout:                  durationpb.New(l.ConnectionIdleTimeout),
			MaxHeadersCount:              wrapperspb.UInt32(l.MaxHeaders),
			HeadersWithUnderscoresAction: corev3.HttpProtocolOptions_REJECT_REQUEST,
		},
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        wrapperspb.UInt32(l.MaxConcurrentStreams),
			InitialStreamWindowSize:     wrapperspb.UInt32(l.StreamWindow),
			InitialConnectionWindowSize: wrapperspb.UInt32(l.ConnectionWindow),
			// A malformed call ends alone: a proxy in front carries the calls
			// of many callers on one connection.
			OverrideStreamErrorOnInvalidHttpMessage: wrapperspb.Bool(true),
		},
	}
}

// noInternalAddress names an address that no caller has: Envoy takes an empty
// list for its default, the private networks.
func noInternalAddress() *hcmv3.HttpConnectionManager_InternalAddressConfig {
	return &hcmv3.HttpConnectionManager_InternalAddressConfig{CidrRanges: []*corev3.CidrRange{{
		AddressPrefix: "255.255.255.255", PrefixLen: wrapperspb.UInt32(32),
	}}}
}

// adsSource says that a resource comes over the stream that Envoy already has
// to xds. There is no timeout after which Envoy would go on without it: a
// listener without routes would answer 404 to everything.
func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(time.Duration(0)),
	}
}

// requestID makes the edge's own id of a call. What a caller sends under that
// name is gone by then (see earlyHeaders). The id is a plain UUID: whether the
// call is traced is not written into it.
func requestID(p *packer) *hcmv3.RequestIDExtension {
	return &hcmv3.RequestIDExtension{TypedConfig: p.any(&uuidv3.UuidRequestIdConfig{
		PackTraceReason:              wrapperspb.Bool(false),
		UseRequestIdForTraceSampling: wrapperspb.Bool(false),
	})}
}
