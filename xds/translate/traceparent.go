package translate

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Envoy traces nothing of a call whose traceparent is malformed: such a call
// would have no trace id in its answer and its audit line. A traceparent that
// is not sound is therefore removed, so that a trace begins here instead. The
// header is moved aside only if it is sound, and back.
const (
	traceparent = "traceparent"
	soundHeader = "x-glidepath-internal-traceparent"

	// soundTraceparent gives the header when it is four groups of hexadecimal
	// digits of the right lengths, of no forbidden version and without a group
	// of zeros alone; a header that is there twice is joined, and not sound.
	// (Several patterns, because one would be larger than Envoy takes.)
	soundTraceparent = `%CEL(` +
		`request.headers['traceparent'].matches('^[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+$')` +
		` && request.headers['traceparent'].matches('^\\C\\C-\\C{32}-\\C{16}-\\C\\C$')` +
		` && !request.headers['traceparent'].matches('^ff|-0+-')` +
		` ? request.headers['traceparent'] : '')%`
)

func soundTrace() []*mutationv3.HeaderMutation {
	return []*mutationv3.HeaderMutation{
		setHeader(soundHeader, soundTraceparent),
		removeHeader(traceparent),
		setHeader(traceparent, "%REQ("+soundHeader+")%"),
		removeHeader(soundHeader),
	}
}

// setHeader sets a header to what a format gives, and not at all when that is
// nothing.
func setHeader(name, format string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: format},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

func removeHeader(name string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}}
}
