package translate

import (
	h2mv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	setmetav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/xds/model"
)

// auditHeaderName is the answer's header in which a backend hands facts to the
// audit line: a base64 protobuf Value that holds a struct.
const auditHeaderName = "x-glidepath-audit"

// auditHeader moves the header into the call's metadata, where the rule and
// the error are read from it. The caller never sees it.
func auditHeader() *h2mv3.Config {
	return &h2mv3.Config{ResponseRules: []*h2mv3.Config_Rule{auditRule(keyAudit, true)}}
}

// routeAuditHeader also puts the header where the fields that only this
// operation may add are read from. The last rule removes it: each rule looks
// at the header anew.
func routeAuditHeader(r model.Route) *h2mv3.Config {
	return &h2mv3.Config{ResponseRules: []*h2mv3.Config_Rule{
		auditRule(keyAudit, false), auditRule(r.Op, true),
	}}
}

func auditRule(key string, remove bool) *h2mv3.Config_Rule {
	return &h2mv3.Config_Rule{
		Header: auditHeaderName,
		Remove: remove,
		OnHeaderPresent: &h2mv3.Config_KeyValuePair{
			MetadataNamespace: metadataName,
			Key:               key,
			Type:              h2mv3.Config_PROTOBUF_VALUE,
			Encode:            h2mv3.Config_BASE64,
		},
	}
}

// setMetadata adds nothing by itself; routes of streams do.
func setMetadata() *setmetav3.Config { return &setmetav3.Config{} }

// routeStream marks a call as a stream.
func routeStream() *setmetav3.Config {
	return &setmetav3.Config{Metadata: []*setmetav3.Metadata{{
		MetadataNamespace: metadataName,
		Value: &structpb.Struct{Fields: map[string]*structpb.Value{
			keyStream: structpb.NewStringValue("yes"),
		}},
	}}}
}
