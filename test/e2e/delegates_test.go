package e2e_test

import (
	"net/http"
	"testing"
)

// rule: R123, R390
func TestADelegatesWriteForNobodyIsRefusedBeforeAnythingIsRead(t *testing.T) {
	for _, op := range []string{"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment"} {
		mark, err := gw.APIServer.AuditMark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reached := len(planned.Requests())
		a := call(t, http.MethodPost, gw.URL+calls[op], as("delegate"))
		refused(t, a, 400, "GP-AUTH-004")
		expectLine(t, auditOf(t, a), line{
			"op": op, "caller": username(t, "delegate"), "onBehalfOf": nil, "decision": "deny", "rule": "GP-AUTH-004", "status": 400.0,
		})
		events, err := gw.APIServer.Audit(t.Context(), mark)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Resource == "subjectaccessreviews" || e.Resource == "pipelineruns" {
				t.Errorf("%s: %s %s at the API server", op, e.Verb, e.Resource)
			}
		}
		if n := len(planned.Requests()); n != reached {
			t.Errorf("%s: reached the backend", op)
		}
	}
}

// The person is in the identity and the audit line letter by letter, and ends
// at the edge as a header.
//
// rule: R083
func TestThePersonIsWrittenDownAsNamed(t *testing.T) {
	for _, person := range []string{"user:default/ana", "Ana B. (team 7)", `a"b\c`, "%41%", "<script>", "people:ana", "system:masters"} {
		before := len(planned.Requests())
		a := ok(t, call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], as("delegate"), onBehalfOf(person)))
		expectLine(t, auditOf(t, a), line{"onBehalfOf": person, "caller": username(t, "delegate"), "decision": "allow"})
		arrived := planned.Requests()[before:]
		if len(arrived) != 1 || len(arrived[0].Header.Values("X-Glidepath-On-Behalf-Of")) > 0 {
			t.Fatalf("%s: the backend got %d requests, or the header", person, len(arrived))
		}
		c, err := newOracle(t).verifiers["writes"].Verify(arrived[0].Header.Get("X-Glidepath-Identity"))
		if err != nil || c.OnBehalfOf != person {
			t.Errorf("%s: the identity says %+v, %v", person, c, err)
		}
	}
}
