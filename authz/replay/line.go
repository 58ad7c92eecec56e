// Package replay owns how past calls are decided again: it reads the edge's
// audit lines, counts the calls that are alike, has each kind of call decided
// by the code of authz against a cluster, and says which would now be decided
// otherwise. It changes nothing in that cluster.
package replay

import (
	"encoding/json/v2"
	"errors"
	"fmt"

	"hangar.io/glidepath/internal/terminal"
)

// Line is what an audit line says of one call, as far as its decision goes.
type Line struct {
	// Op is an operation of the contract, or begins with "_" where the edge
	// refused a request that was none's.
	Op string
	// Caller, App and Person are empty where the line has none.
	Caller, App, Person string
	Allowed             bool
	// Rule is that of the refusal, or of what came after an allow.
	Rule string
	// Time is when the call began, RFC 3339.
	Time string
}

// maxField bounds each field of a line that is kept. The edge writes shorter
// ones: the longest is a user name.
const maxField = 1024

// ErrOther says that a line is JSON and no audit line of a call that anybody
// decided: processes of one pod may write to one file, and the edge serves a
// page to everyone.
var ErrOther = errors.New("no audit line of a call that was decided")

// ParseLine reads one line. The error is ErrOther, or says what is wrong
// without repeating the line.
func ParseLine(raw []byte) (Line, error) {
	var fields struct {
		Msg        string `json:"msg"`
		Time       string `json:"time"`
		Op         string `json:"op"`
		App        string `json:"app"`
		Caller     string `json:"caller"`
		OnBehalfOf string `json:"onBehalfOf"`
		Decision   string `json:"decision"`
		Rule       string `json:"rule"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Line{}, errors.New("not a JSON object of an audit line")
	}
	switch {
	case fields.Msg != "audit", fields.Decision == "public":
		return Line{}, ErrOther
	case fields.Op == "":
		return Line{}, errors.New("names no operation")
	case fields.Decision != "allow" && fields.Decision != "deny":
		return Line{}, errors.New("has no decision")
	}
	for _, f := range []string{fields.Time, fields.Op, fields.App, fields.Caller, fields.OnBehalfOf, fields.Rule} {
		if len(f) > maxField {
			return Line{}, fmt.Errorf("has a field of more than %d bytes", maxField)
		}
		// What is printed must not write to the operator's terminal.
		if !terminal.Plain(f) {
			return Line{}, errors.New("has a character that the edge does not write")
		}
	}
	return Line{
		Op: fields.Op, Caller: fields.Caller, App: fields.App, Person: fields.OnBehalfOf,
		Allowed: fields.Decision == "allow", Rule: fields.Rule, Time: fields.Time,
	}, nil
}
