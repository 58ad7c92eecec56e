package translate

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accessdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// expression is a condition on a call, in the Common Expression Language. It
// must not fail for any call: a filter that fails is false, and so would its
// negation be.
type expression string

const (
	// byEnvoy: the answer came neither from a backend nor from authz. (A
	// caller that leaves in the middle of an answer hides where it came from;
	// then what authz or the backend said of it is the better word.)
	byEnvoy expression = `!(has(response.code_details) && (response.code_details in ["via_upstream", "ext_authz_denied"]` +
		` || response.code_details.startsWith("downstream_") || response.code_details.startsWith("http2.remote_")))`
	// whole: all of the answer was handed to the caller's connection. Whatever
	// ends an answer before that has another word in the details, of Envoy's
	// many: so these are named, and not those.
	whole expression = `has(response.code_details) && response.code_details in ["via_upstream", "ext_authz_denied", "direct_response"]`
	// callerLeft: the caller ended the call, or its connection.
	callerLeft expression = `has(response.code_details) && (response.code_details.startsWith("downstream_remote_")` +
		` || response.code_details.startsWith("http2.remote_"))`
	// begun: the call came as far as its route. Envoy records the beginning of
	// these alone, and the end of all.
	begun expression = `has(xds.route_name)`
)

func not(e expression) expression { return "!(" + e + ")" }

func celFilter(p *packer, e expression) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{
		ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name:       "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: p.any(&celv3.ExpressionFilter{Expression: string(e)})},
		},
	}}
}

// ended is true for the record of a call's end. Envoy can make others, of its
// start for one.
func ended() *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_LogTypeFilter{
		LogTypeFilter: &accesslogv3.LogTypeFilter{Types: []accessdatav3.AccessLogType{accessdatav3.AccessLogType_DownstreamEnd}},
	}}
}

// unanswered is true when no status was ever sent. An interim one, such as the
// 100 that invites a body, is no answer.
func unanswered() *accesslogv3.AccessLogFilter { return statusBelow(firstFinal) }

func answered() *accesslogv3.AccessLogFilter { return statusFrom(firstFinal) }

// firstFinal is the lowest status of a final answer (RFC 9110, section 15).
const firstFinal = 200

func statusFrom(code uint32) *accesslogv3.AccessLogFilter {
	return status(accesslogv3.ComparisonFilter_GE, code)
}

func statusBelow(code uint32) *accesslogv3.AccessLogFilter {
	return status(accesslogv3.ComparisonFilter_LE, code-1)
}

// status compares the status of the answer. Envoy lets the number be changed
// at run time under a key, which is required; nothing sets it.
func status(op accesslogv3.ComparisonFilter_Op, code uint32) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{
		StatusCodeFilter: &accesslogv3.StatusCodeFilter{Comparison: &accesslogv3.ComparisonFilter{
			Op:    op,
			Value: &corev3.RuntimeUInt32{DefaultValue: code, RuntimeKey: "glidepath.unset"},
		}},
	}}
}

func and(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
		AndFilter: &accesslogv3.AndFilter{Filters: filters},
	}}
}

func or(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_OrFilter{
		OrFilter: &accesslogv3.OrFilter{Filters: filters},
	}}
}

// isStream is true of a stream, once it is past authz.
func isStream() *accesslogv3.AccessLogFilter { return callSays(metadataName, keyStream, "yes", false) }

func notStream() *accesslogv3.AccessLogFilter { return callSays(metadataName, keyStream, "no", true) }

// callSays is true when the call's metadata has exactly this value, and
// otherwise says when the metadata has no such key. (Envoy ignores the
// matcher's own invert.)
func callSays(namespace, key, value string, otherwise bool) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_MetadataFilter{
		MetadataFilter: &accesslogv3.MetadataFilter{
			Matcher: &matcherv3.MetadataMatcher{
				Filter: namespace,
				Path:   []*matcherv3.MetadataMatcher_PathSegment{{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key}}},
				Value: &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{
					StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}},
				}},
			},
			MatchIfKeyNotFound: wrapperspb.Bool(otherwise),
		},
	}}
}
