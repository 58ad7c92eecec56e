package translate

import (
	"math"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	samplersv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	tagsv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/xds/model"
)

// traceHeader tells the caller the trace of its call.
const traceHeader = "x-glidepath-trace-id"

// exportTimeout bounds one export of spans.
const exportTimeout = 5 * time.Second

// tracing joins the caller's trace and follows its decision to sample; a trace
// that begins here is sampled by ratio. (Envoy's own sampling settings would
// override the caller.)
func tracing(p *packer, t model.Tracing) *hcmv3.HttpConnectionManager_Tracing {
	config := &tracev3.OpenTelemetryConfig{ServiceName: t.Service, Sampler: sampler(p, t.Ratio)}
	if t.URL != "" {
		config.HttpService = &corev3.HttpService{HttpUri: &corev3.HttpUri{
			Uri:              t.URL,
			HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: t.Cluster},
			Timeout:          durationpb.New(exportTimeout),
		}}
	} else {
		// The tracer must have an exporter. The cluster has no endpoints, and
		// over gRPC that ends an export without a word in the log.
		config.GrpcService = &corev3.GrpcService{
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: t.Cluster}},
			Timeout:         durationpb.New(exportTimeout),
		}
	}
	return &hcmv3.HttpConnectionManager_Tracing{
		Provider: &tracev3.Tracing_Http{
			Name:       "envoy.tracers.opentelemetry",
			ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: p.any(config)},
		},
		CustomTags:       spanTags(),
		MaxPathTagLength: wrapperspb.UInt32(256),
	}
}

func sampler(p *packer, ratio float64) *corev3.TypedExtensionConfig {
	const million = 1_000_000
	return &corev3.TypedExtensionConfig{
		Name: "envoy.tracers.opentelemetry.samplers.parent_based",
		TypedConfig: p.any(&samplersv3.ParentBasedSamplerConfig{
			WrappedSampler: &corev3.TypedExtensionConfig{
				Name: "envoy.tracers.opentelemetry.samplers.trace_id_ratio_based",
				TypedConfig: p.any(&samplersv3.TraceIdRatioBasedSamplerConfig{
					SamplingPercentage: &typev3.FractionalPercent{
						Numerator:   uint32(math.Round(ratio * million)),
						Denominator: typev3.FractionalPercent_MILLION,
					},
				}),
			},
		}),
	}
}

// spanTags are the attributes of a call's span: what its audit line says. One
// without a value is left out.
func spanTags() []*tagsv3.CustomTag {
	route := &metadatav3.MetadataKind{Kind: &metadatav3.MetadataKind_Route_{Route: &metadatav3.MetadataKind_Route{}}}
	call := &metadatav3.MetadataKind{Kind: &metadatav3.MetadataKind_Request_{Request: &metadatav3.MetadataKind_Request{}}}
	return []*tagsv3.CustomTag{
		spanTag(telemetry.AttributeOp, route, metadataName+":"+keyOp, unmatchedName),
		spanTag(telemetry.AttributeTier, route, metadataName+":"+keyTier, ""),
		spanTag(telemetry.AttributeApp, call, filterExtAuthz+":app", ""),
		spanTag(telemetry.AttributeDecision, call, filterExtAuthz+":decision", decisionDeny),
		spanTag(telemetry.AttributeCaller, call, filterExtAuthz+":caller", ""),
		spanTag(telemetry.AttributeOnBehalfOf, call, filterExtAuthz+":onBehalfOf", ""),
		// What a call failed with is recorded here, as Envoy's spans have no
		// events. Envoy marks the span of a 5xx by itself, and no other.
		formattedTag(telemetry.AttributeRule, first(authzField("rule"), auditValue(keyAudit, "rule"))),
		formattedTag(telemetry.AttributeError, first(authzField("error"), auditValue(keyAudit, "error"))),
	}
}

func formattedTag(name, format string) *tagsv3.CustomTag {
	return &tagsv3.CustomTag{Tag: name, Type: &tagsv3.CustomTag_Value{Value: format}}
}

func spanTag(name string, kind *metadatav3.MetadataKind, source, otherwise string) *tagsv3.CustomTag {
	namespace, key, _ := strings.Cut(source, ":")
	return &tagsv3.CustomTag{
		Tag: name,
		Type: &tagsv3.CustomTag_Metadata_{Metadata: &tagsv3.CustomTag_Metadata{
			Kind: kind,
			MetadataKey: &metadatav3.MetadataKey{
				Key:  namespace,
				Path: []*metadatav3.MetadataKey_PathSegment{{Segment: &metadatav3.MetadataKey_PathSegment_Key{Key: key}}},
			},
			DefaultValue: otherwise,
		}},
	}
}
