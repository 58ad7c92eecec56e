// Package apifake stands in for an API server in tests of the decision: token
// and access reviews, and the namespaces' names. It refuses what a real one
// refuses, writes down what it was asked, and fails on demand.
package apifake

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Audience is the API server's own.
const Audience = "https://kubernetes.default.svc"

// ProcessToken is the token that a client of the API server itself must send.
const ProcessToken = "process-token"

// The paths of reviews.
const (
	TokenReviews  = "/apis/authentication.k8s.io/v1/tokenreviews"
	AccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// Token is one token that the API server accepts.
type Token struct {
	User authenticationv1.UserInfo
	// Audiences it is for; empty means Audience.
	Audiences []string
}

// Server is an API server. Its zero value knows nobody. It is safe for
// concurrent use.
type Server struct {
	mu     sync.Mutex
	tokens map[string]Token
	grants map[string]bool
	asked  []authorizationv1.SubjectAccessReviewSpec
	tried  []string
	fault  func(http.ResponseWriter, *http.Request) bool
	issuer *issuer // nil when it publishes no keys

	watched namespaceLog
}

// Accept makes a token good.
func (s *Server) Accept(token string, t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil {
		s.tokens = map[string]Token{}
	}
	if len(t.Audiences) == 0 {
		t.Audiences = []string{Audience}
	}
	s.tokens[token] = t
}

// AcceptUser makes a token of this user good.
func (s *Server) AcceptUser(token, username string, groups ...string) {
	s.Accept(token, Token{User: authenticationv1.UserInfo{
		Username: username, UID: "uid-of-" + username, Groups: append(groups, "system:authenticated"),
		Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=" + token}},
	}})
}

// Revoke makes a token bad.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// Grant lets a user do verb on resource ("runs" or "runs/logs") in a namespace,
// or in every one if namespace is empty.
func (s *Server) Grant(username, verb, resource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grants == nil {
		s.grants = map[string]bool{}
	}
	s.grants[grant(username, verb, resource, namespace)] = true
}

// Withdraw takes a right away.
func (s *Server) Withdraw(username, verb, resource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.grants, grant(username, verb, resource, namespace))
}

func grant(username, verb, resource, namespace string) string {
	return strings.Join([]string{username, verb, resource, namespace}, " ")
}

// Fail has f answer requests that it returns true for, in place of the API
// server. nil ends it.
func (s *Server) Fail(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Asked gives the access reviews so far, and Tried the tokens reviewed.
func (s *Server) Asked() []authorizationv1.SubjectAccessReviewSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Tried gives the tokens that were reviewed so far.
func (s *Server) Tried() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried)
}

// Forget empties what Asked and Tried give.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.tried = nil, nil
}

// Start serves s on loopback until the test ends, and gives the configuration
// that reaches it.
func (s *Server) Start(t testing.TB) *rest.Config {
	t.Helper()
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // clients that leave in the middle
	srv.StartTLS()
	t.Cleanup(func() {
		s.watched.close() // a watch under way would keep the server
		srv.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	return &rest.Config{Host: srv.URL, BearerToken: ProcessToken, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// RoundTrip answers a review without a network, for tests that move a clock.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// CloseIdleConnections is part of being a transport: there are none.
func (*Server) CloseIdleConnections() {}

// Config gives a configuration that reaches s without a network.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://api.invalid", BearerToken: ProcessToken, QPS: -1, Transport: s}
}

// ServeHTTP answers like an API server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	s.Decide(w, r)
}

// Decide answers without regard to Fail, for what Fail calls.
func (s *Server) Decide(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+ProcessToken {
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "POST " + TokenReviews:
		s.reviewToken(w, r)
	case "POST " + AccessReviews:
		s.reviewAccess(w, r)
	case "GET /api/v1/namespaces":
		s.watched.serve(w, r)
	case "GET " + Configuration, "GET " + Keys:
		s.publish(w, r)
	default:
		refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

func (s *Server) reviewToken(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if !decode(w, r, &review, &review.TypeMeta, metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}) {
		return
	}
	if review.Spec.Token == "" {
		refuse(w, http.StatusBadRequest, "token is required for TokenReview in authentication")
		return
	}
	s.mu.Lock()
	s.tried = append(s.tried, review.Spec.Token)
	t, ok := s.tokens[review.Spec.Token]
	s.mu.Unlock()
	wanted := review.Spec.Audiences
	if len(wanted) == 0 {
		wanted = []string{Audience}
	}
	shared := slices.DeleteFunc(slices.Clone(wanted), func(a string) bool { return !slices.Contains(t.Audiences, a) })
	switch {
	case !ok:
		review.Status.Error = "[invalid bearer token, token lookup failed]"
	case len(shared) == 0:
		review.Status.Error = fmt.Sprintf("[invalid bearer token, token audiences %q is invalid for the target audiences %q]", t.Audiences, wanted)
	default:
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: t.User, Audiences: shared}
	}
	answerReview(w, r, review.TypeMeta, &review)
}

func (s *Server) reviewAccess(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if !decode(w, r, &review, &review.TypeMeta, metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}) {
		return
	}
	attributes := review.Spec.ResourceAttributes
	if attributes == nil || review.Spec.NonResourceAttributes != nil {
		refuse(w, http.StatusUnprocessableEntity, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
		return
	}
	if review.Spec.User == "" && len(review.Spec.Groups) == 0 {
		refuse(w, http.StatusUnprocessableEntity, "at least one of user or group must be specified")
		return
	}
	resource := attributes.Resource
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	s.mu.Lock()
	s.asked = append(s.asked, review.Spec)
	everywhere := s.grants[grant(review.Spec.User, attributes.Verb, resource, "")]
	there := s.grants[grant(review.Spec.User, attributes.Verb, resource, attributes.Namespace)]
	s.mu.Unlock()
	// RBAC compares the group as a string, though nobody serves it.
	review.Status.Allowed = attributes.Group == "glidepath.hangar.io" && (everywhere || there)
	answerReview(w, r, review.TypeMeta, &review)
}

func refuse(w http.ResponseWriter, code int, message string) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: message, Code: int32(code),
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}
