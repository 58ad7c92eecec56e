package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/sse"
)

// callTimeout is over every deadline inside the gateway: a call that reaches it
// was left hanging.
const callTimeout = 20 * time.Second

// client sends what it is told to: it neither follows redirects nor asks for
// or undoes compression.
var client = &http.Client{
	Timeout:       callTimeout,
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// answer is what came back, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// traceID is the id that joins the answer with its audit line and its span.
func (a answer) traceID() string { return a.header.Get("X-Glidepath-Trace-Id") }

// problem reads a refusal.
func (a answer) problem(t *testing.T) problem.Body {
	t.Helper()
	var b problem.Body
	a.decode(t, &b)
	return b
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("status %d, the body is no JSON: %v: %.300s", a.status, err, a.body)
	}
}

// change alters a request before it is sent.
type change func(*http.Request)

func as(caller string) change { return bearer(tokens[caller]) }

func bearer(token string) change { return header("Authorization", "Bearer "+token) }

func header(name, value string) change {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func onBehalfOf(person string) change { return header("X-Glidepath-On-Behalf-Of", person) }

// get calls the shared gateway.
func get(t *testing.T, path string, changes ...change) answer {
	t.Helper()
	return call(t, http.MethodGet, gw.URL+path, changes...)
}

// call sends one request and checks the answer against the contract.
func call(t *testing.T, method, target string, changes ...change) answer {
	t.Helper()
	req, a, err := try(t.Context(), method, target, changes...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	conforms(t, req, a)
	return a
}

// try is call for a request that may fail, as while parts are being killed.
func try(ctx context.Context, method, target string, changes ...change) (*http.Request, answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return nil, answer{}, err
	}
	for _, c := range changes {
		c(req)
	}
	res, err := client.Do(req)
	if err != nil {
		return req, answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := read(res)
	return req, answer{status: res.StatusCode, header: res.Header, body: b}, err
}

// read gives the body of an answer: of events, which have no end, the first one.
func read(res *http.Response) ([]byte, error) {
	if res.Header.Get("Content-Type") != sse.ContentType {
		return io.ReadAll(io.LimitReader(res.Body, 64<<20))
	}
	var event []byte
	for lines := bufio.NewReader(res.Body); !bytes.HasSuffix(event, []byte("\n\n")); {
		line, err := lines.ReadBytes('\n')
		event = append(event, line...)
		if err != nil {
			return event, err
		}
	}
	return event, nil
}

// contract is the OpenAPI file, read once.
var contract = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		return nil, err
	}
	doc.Servers = nil
	return gorillamux.NewRouter(doc)
})

// conforms fails the test when an answer is not what the contract says: a
// status it does not list, a header it requires, a body of another shape. A
// request that is no operation's is held to the shape of a refusal.
func conforms(t *testing.T, req *http.Request, a answer) {
	t.Helper()
	router, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	plain := &http.Request{Method: req.Method, URL: &u, Header: req.Header, Host: req.Host}
	route, params, err := router.FindRoute(plain)
	if errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed) {
		refusal(t, a)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if op, _ := api.Lookup(route.Operation.OperationID); op.Planned && a.status < http.StatusMultipleChoices {
		return // a stand-in answered
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: plain, PathParams: params, Route: route},
		Status:                 a.status,
		Header:                 a.header,
		Body:                   io.NopCloser(bytes.NewReader(uncompressed(t, a))),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true,
			// Events are held to their form elsewhere; a report is XML of any form.
			ExcludeResponseBody: slices.Contains([]string{sse.ContentType, "application/xml"}, a.header.Get("Content-Type")),
		},
	})
	if err != nil {
		t.Errorf("%s %s answered %d against the contract: %v", req.Method, req.URL.Path, a.status, err)
	}
	if a.status >= http.StatusBadRequest {
		refusal(t, a)
	}
	if a.traceID() == "" {
		t.Errorf("%s %s answered %d without a trace id", req.Method, req.URL.Path, a.status)
	}
}

// refusal holds an answer to the shape that every refusal has, Envoy's own
// included: JSON with a rule of the error table that goes with the status.
func refusal(t *testing.T, a answer) {
	t.Helper()
	b := a.problem(t)
	if ct := a.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("a refusal of type %q", ct)
	}
	for _, r := range problem.All() {
		if r.ID == b.Rule {
			if r.Status != a.status {
				t.Errorf("%s came with status %d, not %d", b.Rule, a.status, r.Status)
			}
			if b.Message == "" {
				t.Errorf("%s came without a message", b.Rule)
			}
			if b.TraceID != "" && a.traceID() != b.TraceID {
				t.Errorf("the body's trace id is %s, the header's %s", b.TraceID, a.traceID())
			}
			return
		}
	}
	t.Errorf("status %d with rule %q, which is not in the table: %.300s", a.status, b.Rule, a.body)
}

// refused fails the test unless the answer is this refusal.
func refused(t *testing.T, a answer, status int, rule string) {
	t.Helper()
	if got := a.problem(t).Rule; a.status != status || got != rule {
		t.Fatalf("got %d %s, want %d %s: %.300s", a.status, got, status, rule, a.body)
	}
}

// ok fails the test unless the answer is a 200.
func ok(t *testing.T, a answer) answer {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("got %d, want 200: %.300s", a.status, a.body)
	}
	return a
}
