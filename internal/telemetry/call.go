package telemetry

import "go.opentelemetry.io/otel/attribute"

// The attributes that say on a span what the call's audit line says of it.
const (
	AttributeOp         = "glidepath.op"
	AttributeTier       = "glidepath.tier"
	AttributeApp        = "glidepath.app"
	AttributeDecision   = "glidepath.decision"
	AttributeCaller     = "glidepath.caller"
	AttributeOnBehalfOf = "glidepath.on_behalf_of"
	AttributeRule       = "glidepath.rule"
	AttributeError      = "glidepath.error"
)

// Call is what a process knows of the call that its span is about. What is
// empty is no attribute.
type Call struct {
	Op, Tier, App, Decision, Caller, OnBehalfOf string
}

// Attributes gives those of c after those that are given.
func (c Call) Attributes(first ...attribute.KeyValue) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, len(first), len(first)+6) // most checks are spans: one allocation
	copy(attrs, first)
	for _, a := range [...]struct{ name, value string }{
		{AttributeOp, c.Op},
		{AttributeTier, c.Tier},
		{AttributeApp, c.App},
		{AttributeDecision, c.Decision},
		{AttributeCaller, c.Caller},
		{AttributeOnBehalfOf, c.OnBehalfOf},
	} {
		if a.value != "" {
			attrs = append(attrs, attribute.String(a.name, a.value))
		}
	}
	return attrs
}
