package review_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/internal/problem"
)

type sharedCase struct {
	Name, Expected string
	Object         json.RawMessage
}

// sharedCases reads a file of the shared cases.
func sharedCases(t *testing.T, into any, path ...string) {
	t.Helper()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(append([]string{cases}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// answer has the API server answer every review with body.
func (p *parts) answer(status int, body []byte) {
	p.api.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return true
	})
}

func TestTheSharedTokenReviews(t *testing.T) {
	var cases []sharedCase
	sharedCases(t, &cases, "kube", "reviews", "tokenreviews-composed.json")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			p := start(t, audiences("cicd-api"))
			p.answer(http.StatusCreated, c.Object)
			got := p.authenticate(t.Context(), "x", authn.ForRead)
			accepted := !strings.HasPrefix(got, "GP-")
			switch {
			case strings.HasPrefix(c.Expected, "authenticated"):
				if name, ok := strings.CutPrefix(c.Expected, "authenticated as "); !accepted || (ok && got != name) {
					t.Errorf("got %s, want %s", got, c.Expected)
				}
			case strings.HasPrefix(c.Expected, "reject"):
				if got != problem.AuthBadToken.ID {
					t.Errorf("got %s, want %s", got, c.Expected)
				}
			default: // no answer at all
				if got != problem.SourceFailed.ID {
					t.Errorf("got %s, want %s", got, c.Expected)
				}
			}
		})
	}
}

func TestTheSharedAccessReviews(t *testing.T) {
	var cases []sharedCase
	sharedCases(t, &cases, "kube", "reviews", "subjectaccessreviews-composed.json")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			p := start(t)
			p.api.AcceptUser("good", "u")
			caller := p.caller(t, "good")
			p.answer(http.StatusCreated, c.Object)
			got, err := p.access.Allowed(t.Context(), caller, list, authn.ForRead)
			if err != nil || got != (c.Expected == "allow") {
				t.Errorf("got %v %v, want %s", got, err, c.Expected)
			}
		})
	}
}

// Answers with every field that an API server may send are read, and not taken
// for garbage.
func TestReviewsWithEveryFieldSetAreRead(t *testing.T) {
	var tokenReview, accessReview json.RawMessage
	sharedCases(t, &tokenReview, "kube", "k8s-api-roundtrip", "authentication.k8s.io.v1.TokenReview.json")
	sharedCases(t, &accessReview, "kube", "k8s-api-roundtrip", "authorization.k8s.io.v1.SubjectAccessReview.json")
	p := start(t)
	p.api.AcceptUser("good", "u")
	caller := p.caller(t, "good")
	p.answer(http.StatusCreated, tokenReview)
	if got := p.authenticate(t.Context(), "x", authn.ForRead); got != problem.AuthBadToken.ID { // its error is set, too
		t.Errorf("token: %s", got)
	}
	p.answer(http.StatusCreated, accessReview)
	if got, err := p.access.Allowed(t.Context(), caller, list, authn.ForRead); got || err != nil { // denied is set, too
		t.Errorf("access: %v %v", got, err)
	}
}
