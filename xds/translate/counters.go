package translate

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	statsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	scopev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The names of the counters in Envoy's admin interface. The bootstrap's
// buckets are for this prefix, and authz reads them from there.
const (
	statsPrefix    = "glidepath_api"
	statsRequests  = "requests"
	statsDurations = "request_duration"
)

// counters count every call by what its audit line says, and time those that
// were answered at once: a stream's duration is its viewer's choice, and a
// caller that left was answered in no time at all.
func counters(p *packer) []*accesslogv3.AccessLog {
	op := tag("op", first(opRoute, opUnmatched))
	tier := tag("tier", opTier.String())
	requests := &statsv3.Config{
		StatsScope: &scopev3.Scope{Prefix: statsPrefix},
		Counters: []*statsv3.Config_Counter{{
			Stat: &statsv3.Config_Stat{Name: statsRequests, Tags: []*statsv3.Config_Tag{
				op, tier,
				tag("code", opStatus.String()),
				tag("decision", first(opDecision, opDeny)),
			}},
			ValueFixed: wrapperspb.UInt64(1),
		}},
	}
	durations := &statsv3.Config{
		StatsScope: &scopev3.Scope{Prefix: statsPrefix},
		Histograms: []*statsv3.Config_Histogram{{
			Stat:        &statsv3.Config_Stat{Name: statsDurations, Tags: []*statsv3.Config_Tag{op, tier}},
			Unit:        statsv3.Config_Histogram_Milliseconds,
			ValueFormat: opDurationMS.String(),
		}},
	}
	notStream := callSays(metadataName, keyStream, "no", true)
	return []*accesslogv3.AccessLog{
		statsLog(p, "counters", ended(), requests),
		statsLog(p, "durations", and(ended(), answered(), notStream), durations),
	}
}

func tag(name, format string) *statsv3.Config_Tag {
	return &statsv3.Config_Tag{Name: name, ValueFormat: format}
}

func statsLog(p *packer, name string, when *accesslogv3.AccessLogFilter, config *statsv3.Config) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{
		Name:       name,
		Filter:     when,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: p.any(config)},
	}
}
