package main

import (
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/provider"
)

func TestExplainVerifiesThePersonsOfAnIssuer(t *testing.T) {
	p, err := provider.Start(t.Context(), provider.Config{Addr: "127.0.0.1:0", People: []provider.Person{
		{Login: fleet.PersonReader, UserID: "1001"}, {Login: fleet.PersonStranger, UserID: "1004"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for name, tc := range map[string]struct {
		op, login string
		claims    map[string]any
		rule      string
		reviews   int
	}{
		"a read":                       {"listRuns", fleet.PersonReader, nil, "", 1},
		"a write without the right":    {"cancelPipelineRun", fleet.PersonReader, nil, "GP-AUTHZ-001", 1},
		"who may not sign in":          {"listRuns", fleet.PersonStranger, nil, "GP-AUTH-005", 0},
		"a token of another client":    {"listRuns", fleet.PersonReader, map[string]any{"aud": "clearance"}, "GP-AUTH-002", 0},
		"a token that has expired":     {"listRuns", fleet.PersonReader, map[string]any{"iat": time.Now().Unix() - 7200, "exp": time.Now().Unix() - 3600}, "GP-AUTH-002", 0},
		"a token of nobody's own name": {"listRuns", fleet.PersonReader, map[string]any{"preferred_username": "system:admin"}, "GP-AUTH-002", 0},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := p.Token(tc.login, tc.claims)
			if err != nil {
				t.Fatal(err)
			}
			r := explained(t, token, tc.op, "--app=gate-api", "--token-file="+tokenFile(t, token), "--oidc-issuer="+p.Issuer,
				"--oidc-audience="+provider.Client, "--oidc-allowed-users="+fleet.PersonReader)
			if r.Token.Issuer != p.Issuer || r.Token.VerifiedBy != "the keys of its issuer" || r.Answer.Rule != tc.rule || r.Answer.Allowed != (tc.rule == "") || len(r.Reviews) != tc.reviews {
				t.Errorf("token %+v, answer %+v, reviews %+v", r.Token, r.Answer, r.Reviews)
			}
			if tc.reviews > 0 && (r.Caller.Username != "people:"+fleet.PersonReader || r.Caller.Kind != "person") {
				t.Errorf("caller %+v", r.Caller)
			}
		})
	}
}

func TestExplainSaysThatNoIssuerIsGiven(t *testing.T) {
	p, err := provider.Start(t.Context(), provider.Config{Addr: "127.0.0.1:0", People: []provider.Person{{Login: fleet.PersonReader, UserID: "1001"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	token, err := p.Token(fleet.PersonReader, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "explain", "whoami", "--kubeconfig="+cluster.Kubeconfig, "--token-file="+tokenFile(t, token))
	if err != nil || !strings.Contains(out, "\n            note       no --oidc-issuer is given") {
		t.Errorf("got %s, %v", out, err)
	}
	_, token = caller(t, "reader")
	out, err = run(t, "explain", "whoami", "--kubeconfig="+cluster.Kubeconfig, "--token-file="+tokenFile(t, token))
	if err != nil || strings.Contains(out, "--oidc-issuer") {
		t.Errorf("a token that the cluster takes: %s, %v", out, err)
	}
}
