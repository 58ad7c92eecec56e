package translate

import (
	"fmt"
	"strings"
)

// operator is one command of Envoy's log formats, such as %DYNAMIC_METADATA(…)%.
type operator struct{ command, param string }

// The operators that more than one place uses.
var (
	opRoute      = operator{command: "ROUTE_NAME"}
	opUnmatched  = operator{"METADATA", "LISTENER:" + metadataName + ":" + keyUnmatched}
	opTier       = operator{"METADATA", "ROUTE:" + metadataName + ":" + keyTier}
	opDecision   = authzField("decision")
	opPublic     = operator{"METADATA", "ROUTE:" + metadataName + ":" + keyDecision}
	opDeny       = operator{"METADATA", "LISTENER:" + metadataName + ":" + keyDeny}
	opStatus     = operator{command: "RESPONSE_CODE"}
	opDetails    = operator{command: "RESPONSE_CODE_DETAILS"}
	opDurationMS = operator{command: "DURATION"}
)

// The keys of our metadata. The listener holds words that a format can fall
// back to; a route says its tier and operation; a call that is a stream says
// so.
const (
	keyDeny      = "deny"
	keyUnmatched = "unmatched"
	keyTier      = "tier"
	keyOp        = "op"
	keyDecision  = "decision"
	keyStream    = "stream"
	keyAudit     = "audit"
)

// decisionDeny is the decision of a call that nobody decided.
const decisionDeny = "deny"

// authzField reads what authz said about a call.
func authzField(name string) operator {
	return operator{"DYNAMIC_METADATA", filterExtAuthz + ":" + name}
}

// auditValue reads a field of the audit header, under the key that the header
// was put at.
func auditValue(key, name string) operator {
	return operator{"DYNAMIC_METADATA", metadataName + ":" + key + ":" + name}
}

// String gives the operator as it stands in a format.
func (o operator) String() string {
	if o.param == "" {
		return "%" + o.command + "%"
	}
	return fmt.Sprintf("%%%s(%s)%%", o.command, o.param)
}

// first gives a format that is the first of the operators to have a value. It
// keeps the value's type, and has none when none of them has.
func first(operators ...operator) string {
	if len(operators) == 1 {
		return operators[0].String()
	}
	entries := make([]string, len(operators))
	for i, o := range operators {
		// Both are plain names, for which Go's quotes are JSON's.
		entries[i] = fmt.Sprintf(`{"command":%q,"param":%q}`, o.command, o.param)
		if o.param == "" {
			entries[i] = fmt.Sprintf(`{"command":%q}`, o.command)
		}
	}
	return `%COALESCE({"operators":[` + strings.Join(entries, ",") + `]})%`
}
