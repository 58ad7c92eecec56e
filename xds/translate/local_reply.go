package translate

import (
	"cmp"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/xds/model"
)

const jsonContent = "application/json"

// localReplies gives what Envoy answers by itself the shape of every other
// error. The first mapper that matches is taken.
func localReplies(p *packer, replies []model.Reply) *hcmv3.LocalReplyConfig {
	replies = slices.Clone(replies)
	slices.SortFunc(replies, func(a, b model.Reply) int { return cmp.Compare(a.Status, b.Status) })
	byStatus := map[uint32]model.Reply{}
	mappers := []*hcmv3.ResponseMapper{refusal()}
	for _, r := range replies {
		byStatus[r.Status] = r
		mappers = append(mappers, mapper(p, status(accesslogv3.ComparisonFilter_EQ, r.Status), r))
	}
	// A transfer coding that Envoy does not know is the caller's mistake.
	mappers = append(mappers, mapper(p, status(accesslogv3.ComparisonFilter_EQ, 501), byStatus[model.StatusOtherRequest]))
	// What is left has a status that callers were not told of, such as the
	// 403 to an attempt to upgrade the connection. A page is no error.
	mappers = append(mappers,
		mapper(p, and(statusFrom(400), statusBelow(500)), byStatus[model.StatusOtherRequest]),
		mapper(p, statusFrom(500), byStatus[model.StatusOtherServer]),
	)
	return &hcmv3.LocalReplyConfig{Mappers: mappers}
}

// refusal passes what authz answered. That authz was away carries the same
// flags as a refusal does, so it is told apart by what is in the call's
// metadata, which only authz can have put there: a refusal's decision, or the
// rule of a call over a rate limit, the only one that an allowed call has.
func refusal() *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{
		Filter: or(
			callSays(filterExtAuthz, "decision", decisionDeny, false),
			callSays(filterExtAuthz, "rule", problem.EdgeTooManyRequests.ID, false),
		),
		BodyFormatOverride: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: "%LOCAL_REPLY_BODY%"},
			}},
			ContentType: jsonContent,
		},
	}
}

func mapper(p *packer, when *accesslogv3.AccessLogFilter, r model.Reply) *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{
		Filter:             when,
		StatusCode:         wrapperspb.UInt32(r.Status),
		BodyFormatOverride: replyFormat(p, r, answeredTrace),
		HeadersToAdd:       []*corev3.HeaderValueOption{setTo("cache-control", "no-store")},
	}
}

// answeredTrace is the trace id as the answer's own header has it: Envoy's
// format for bodies does not know the trace. A request that is refused before
// it has a route has neither.
const answeredTrace = "%RESP(" + traceHeader + ")%"

// replyFormat is the body; trace is where it finds the trace id.
func replyFormat(p *packer, r model.Reply, trace string) *corev3.SubstitutionFormatString {
	body := map[string]any{
		"rule":    r.Rule,
		"message": r.Message,
		"traceId": trace,
	}
	if r.Hint != "" {
		body["hint"] = r.Hint
	}
	format, err := structpb.NewStruct(body)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	return &corev3.SubstitutionFormatString{
		Format:          &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: format},
		OmitEmptyValues: true,
		ContentType:     jsonContent,
	}
}
