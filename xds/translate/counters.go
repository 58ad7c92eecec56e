package translate

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	accessdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	statsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stats/v3"
	scopev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/envoy"
)

// counters count every call by what its audit line says, and time those that
// were answered at once: a stream's duration is its viewer's choice, and a
// caller that left was answered in no time at all. A gauge follows each call
// from its beginning to its end, a stream's too.
func counters(p *packer) []*accesslogv3.AccessLog {
	op := tag("op", first(opRoute, opUnmatched))
	tier := tag("tier", opTier.String())
	scope := &scopev3.Scope{Prefix: envoy.StatPrefix}
	requests := &statsv3.Config{
		StatsScope: scope,
		Counters: []*statsv3.Config_Counter{{
			Stat: &statsv3.Config_Stat{Name: envoy.StatRequests, Tags: []*statsv3.Config_Tag{
				op, tier,
				tag("code", opStatus.String()),
				tag("decision", first(opDecision, opPublic, opDeny)),
			}},
			ValueFixed: wrapperspb.UInt64(1),
		}},
	}
	durations := &statsv3.Config{
		StatsScope: scope,
		Histograms: []*statsv3.Config_Histogram{{
			Stat:        &statsv3.Config_Stat{Name: envoy.StatDurations, Tags: []*statsv3.Config_Tag{op, tier}},
			Unit:        statsv3.Config_Histogram_Milliseconds,
			ValueFormat: opDurationMS.String(),
		}},
	}
	inFlight := &statsv3.Config{
		StatsScope: scope,
		Gauges: []*statsv3.Config_Gauge{{
			Stat:       &statsv3.Config_Stat{Name: envoy.StatInFlight, Tags: []*statsv3.Config_Tag{op}},
			ValueFixed: wrapperspb.UInt64(1),
			// Envoy subtracts what it has added even when the end is never
			// recorded, so that the gauge cannot drift.
			AddSubtract: &statsv3.Config_Gauge_PairedAddSubtract{
				AddLogType: accessdatav3.AccessLogType_DownstreamStart, SubLogType: accessdatav3.AccessLogType_DownstreamEnd,
			},
		}},
	}
	return []*accesslogv3.AccessLog{
		statsLog(p, "counters", ended(), requests),
		statsLog(p, "durations", and(ended(), answered(), notStream()), durations),
		statsLog(p, "in-flight", celFilter(p, begun), inFlight),
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
