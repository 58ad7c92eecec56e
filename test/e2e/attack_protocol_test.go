package e2e_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rule: R387, R388
func TestAttackARefusalIsNoSuccessToACallThatSaysItIsGRPC(t *testing.T) {
	for _, contentType := range []string{"application/grpc", "application/grpc+proto"} {
		for _, path := range []string{"/v1/live", "/v1/whoami", "/v1/nothing", "/v1/apps/a%25b/live"} {
			for name, changes := range map[string][]change{"nobody": nil, "a stranger": {as("stranger")}, "a reader": {as("reader")}} {
				_, a, err := try(t.Context(), http.MethodGet, gw.URL+path, append(changes, header("Content-Type", contentType))...)
				if err != nil {
					t.Fatal(err)
				}
				refused(t, a, 400, "GP-EDGE-400")
				if got := a.header.Get("Content-Type"); got != "application/json" {
					t.Errorf("%s as %s: the refusal is of type %q", path, name, got)
				}
				expectLine(t, auditOf(t, a), line{"op": "_unmatched", "decision": "deny", "rule": "GP-EDGE-400", "status": 400.0, "caller": nil})
			}
		}
	}
}

// rule: R415
func TestAttackACallerThatLeavesAfterAnInterimAnswerIsA499(t *testing.T) {
	const trace = "5bf92f3577b34da6a3ce929d0e0e4736"
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(gw.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(c, "GET /v1/live HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 5\r\nTraceparent: 00-"+trace+"-00f067aa0ba902b7-01\r\nAuthorization: Bearer "+tokens["reader"]+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	interim := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(c, interim); err != nil || string(interim) != "HTTP/1.1 100" {
		t.Fatalf("got %q, %v", interim, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var found []line
	eventually(t, "the line of the call that was left", func() bool {
		found = linesAfter(t, func(l line) bool { return l["traceId"] == trace })
		return len(found) > 0
	})
	if len(found) != 1 || found[0]["status"] != 499.0 || found[0]["error"] == nil {
		t.Errorf("got %v", found)
	}
}

// rule: R083
func TestAttackAPersonsNameIsRecordedAsSentOrRefused(t *testing.T) {
	a := get(t, "/v1/live", as("delegate"), onBehalfOf("zo\xff\xfe"))
	refused(t, a, 400, "GP-API-400")
	if got := auditOf(t, a)["onBehalfOf"]; got != nil {
		t.Errorf("the line names %v", got)
	}
}

func TestAttackAnExpectationOfTheCallersReachesNoBackend(t *testing.T) {
	a := rawGet(t, "/v1/live", "Expect: anything-else")
	if a.status != http.StatusOK {
		refusal(t, a)
	}
}

// rule: R387
func TestAttackAnUnknownTransferCodingIsTheCallersFault(t *testing.T) {
	for _, coding := range []string{"xchunked", "gzip, chunked"} {
		a := raw(t, "POST /v1/live HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: "+coding+"\r\n\r\n")
		refused(t, a, 400, "GP-EDGE-400")
	}
}
