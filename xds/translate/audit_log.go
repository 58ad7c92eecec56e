package translate

import (
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/xds/model"
)

// auditLogs write exactly one line to stdout for every call when it ends. The
// loggers differ in what they say of the outcome, and their filters take
// turns: for every call, one of them is true.
//
//	no status          the caller left before an answer: 499
//	4xx, 5xx of ours   Envoy answered by itself: its rule, and why
//	cut short          an answer that began and broke off, whoever ended it: why
//	all others         what authz and the backend said
//
// A stream is whole when its caller leaves: there is no other end that a caller
// can want.
func auditLogs(p *packer, routes []model.Route) []*accesslogv3.AccessLog {
	fields := commonFields(routes)
	return []*accesslogv3.AccessLog{
		auditLog(p, "audit.left", and(ended(), unanswered()), fields, map[string]any{
			"status": 499, "error": opDetails.String(),
		}),
		auditLog(p, "audit.edge", and(ended(), statusFrom(400), celFilter(p, byEnvoy)), fields, map[string]any{
			"status": opStatus.String(), "rule": "GP-EDGE-" + opStatus.String(), "error": opDetails.String(),
		}),
		auditLog(p, "audit.cut", and(ended(), answered(), statusBelow(400),
			celFilter(p, not(whole)), or(notStream(), celFilter(p, not(callerLeft))),
		), fields, map[string]any{
			"status": opStatus.String(), "error": opDetails.String(),
		}),
		auditLog(p, "audit", and(ended(), answered(), or(
			and(statusBelow(400), celFilter(p, whole)),
			and(statusBelow(400), isStream(), celFilter(p, callerLeft)),
			and(statusFrom(400), celFilter(p, not(byEnvoy))),
		)), fields, map[string]any{
			"status": opStatus.String(),
			"rule":   first(authzField("rule"), auditValue(keyAudit, "rule")),
			"error":  first(authzField("error"), auditValue(keyAudit, "error")),
		}),
	}
}

// commonFields are the keys that every line has, where they have a value: a
// key without one is left out.
func commonFields(routes []model.Route) map[string]any {
	fields := map[string]any{
		"msg":        "audit",
		"time":       "%START_TIME%",
		"op":         first(opRoute, opUnmatched),
		"tier":       opTier.String(),
		"app":        authzField("app").String(),
		"caller":     authzField("caller").String(),
		"onBehalfOf": authzField("onBehalfOf").String(),
		"decision":   first(opDecision, opPublic, opDeny),
		"ms":         opDurationMS.String(),
		"traceId":    "%TRACE_ID%",
		"requestId":  "%REQ(X-REQUEST-ID)%",
		// HTTP/2 bounds a method by the size of all headers only.
		"method": "%REQ(:METHOD):20%",
	}
	for name, ops := range extraFields(routes) {
		var sources []operator
		for _, op := range ops {
			sources = append(sources, auditValue(op, name))
		}
		fields[name] = first(sources...)
	}
	return fields
}

// extraFields gives the operations that may add a name to their line, by the
// name. A name is read only from where an operation's route has put it, so no
// operation adds what only another may.
func extraFields(routes []model.Route) map[string][]string {
	out := map[string][]string{}
	for _, r := range routes {
		for _, name := range r.AuditFields {
			out[name] = append(out[name], r.Op)
		}
	}
	for _, ops := range out {
		slices.Sort(ops)
	}
	return out
}

func auditLog(p *packer, name string, when *accesslogv3.AccessLogFilter, common, own map[string]any) *accesslogv3.AccessLog {
	fields := maps.Clone(common)
	maps.Copy(fields, own)
	format, err := structpb.NewStruct(fields)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	return &accesslogv3.AccessLog{
		Name:   name,
		Filter: when,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: p.any(&streamv3.StdoutAccessLog{
			AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
				Format:          &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: format},
				OmitEmptyValues: true,
			}},
		})},
	}
}
