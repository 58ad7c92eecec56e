package extauthz_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hangar.io/glidepath/api"
)

// Requests that other authorizers were broken with, each as a call of our own
// operations. None of them carries a token that counts.
func TestTheSharedCheckRequestsAreAllRefused(t *testing.T) {
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	e, s := newStack(t)
	s.AcceptUser("VALID", "tower")
	for _, file := range []string{"ext-authz-checkrequests-composed.json", "ext-authz-checkrequests-opa.json"} {
		raw, err := os.ReadFile(filepath.Join(cases, "http", file))
		if err != nil {
			t.Fatal(err)
		}
		var requests []struct {
			Name, Source string
			CheckRequest json.RawMessage `json:"check_request"`
		}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "/api/v1/runs", "/v1/live")), &requests); err != nil {
			t.Fatal(err)
		}
		if len(requests) == 0 {
			t.Fatalf("%s holds no request", file)
		}
		for _, r := range requests {
			for _, op := range append([]string{"", "_unmatched"}, ids()...) {
				req := &authv3.CheckRequest{}
				if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(r.CheckRequest, req); err != nil {
					t.Logf("%s%s: not a request that Envoy could send: %v", r.Name, r.Source, err)
					break
				}
				if op != "" {
					if req.Attributes == nil {
						req.Attributes = &authv3.AttributeContext{}
					}
					if req.Attributes.ContextExtensions == nil {
						req.Attributes.ContextExtensions = map[string]string{}
					}
					req.Attributes.ContextExtensions["op"] = op
				}
				if resp := e.check(t, req); resp.GetStatus().GetCode() == 0 || resp.GetOkResponse() != nil || bodyOf(t, resp).Rule == "" {
					t.Errorf("%s%s as %q: %v", r.Name, r.Source, op, resp)
				}
			}
		}
	}
	// The way in that all of them lack is open.
	if resp := e.check(t, request("listLiveRuns", "GET", "/v1/live", map[string]string{"authorization": "Bearer VALID"})); resp.GetOkResponse() == nil {
		t.Errorf("a sound request is refused: %v", resp)
	}
}

func ids() []string {
	var out []string
	for _, op := range api.Operations() {
		out = append(out, op.ID)
	}
	return out
}

// Tokens of an issuer that this gateway does not know yet (people sign in
// later). Whatever one of them is and claims, no part of it is taken for an
// answer: without a TokenReview that accepts it, and the one here accepts none
// of them, it is refused. Nothing is shown here of how a JWT is verified, since
// nothing here verifies one.
func TestNoSharedJWTIsAcceptedWithoutATokenReviewThatSaysSo(t *testing.T) {
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(cases, "http", "jwt", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Name, Token string }
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 100 {
		t.Fatalf("only %d tokens", len(vectors))
	}
	e, _ := newStack(t)
	for _, v := range vectors {
		token := v.Token
		if token == "" {
			token = strings.Repeat("a", 1<<20) // the one that the cases describe and do not hold
		}
		for _, header := range []string{"authorization", "x-glidepath-authorization"} {
			resp := e.check(t, request("listLiveRuns", "GET", "/v1/live", map[string]string{header: "Bearer " + token}))
			if resp.GetOkResponse() != nil || bodyOf(t, resp).Rule != "GP-AUTH-002" && bodyOf(t, resp).Rule != "GP-AUTH-001" {
				t.Errorf("%s: %v", v.Name, resp)
			}
		}
	}
}
