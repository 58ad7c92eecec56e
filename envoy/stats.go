package envoy

// The names under which the edge's Envoy counts calls. xds has Envoy count
// them, the bootstrap gives the durations their buckets, and authz reads all of
// them from the admin interface, where they stand as "prefix.name" and, in
// Prometheus's form, as StatFamily gives them.
const (
	StatPrefix = "glidepath_api"

	StatRequests  = "requests"
	StatDurations = "request_duration" // milliseconds
	StatInFlight  = "in_flight_requests"
)

// StatFamily gives the name of a statistic in Prometheus's form.
func StatFamily(name string) string { return "envoy_" + StatPrefix + "_" + name }
