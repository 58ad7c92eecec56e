package telemetry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/standin/otlp"
	"hangar.io/glidepath/internal/telemetry"
)

func named(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}

// only gives the span of a name, which there is once.
func only(t *testing.T, r *otlp.Receiver, name string) otlp.Span {
	t.Helper()
	var found []otlp.Span
	for _, s := range r.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans are called %s", len(found), name)
	}
	return found[0]
}

func wantAttributes(t *testing.T, s otlp.Span, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := s.Attributes[key]; got != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got, value)
		}
	}
}

func TestTheSpanOfAnAnswerSaysWhatWasAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   map[string]string
		failed bool
	}{
		"a body": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
			map[string]string{"http.response.status_code": "200", "http.response.body.size": "5", "error.type": ""},
			false,
		},
		"nothing": {
			func(http.ResponseWriter, *http.Request) {},
			map[string]string{"http.response.status_code": "200", "http.response.body.size": "0"},
			false,
		},
		"a hint, and then the answer": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusNotFound)
			},
			map[string]string{"http.response.status_code": "404", "error.type": ""},
			false,
		},
		"a failure": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			map[string]string{"http.response.status_code": "502", "error.type": "502"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := collector(t)
			tracing, _ := start(t, telemetry.TraceConfig{OTLPEndpoint: r.URL, TraceRatio: 1}, nil)
			s := httptest.NewServer(tracing.Handler(tt.answer, named("call")))
			defer s.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/x?q=secret", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("User-Agent", "curl")
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			tracing.Shutdown(t.Context())
			span := only(t, r, "call")
			wantAttributes(t, span, tt.want)
			wantAttributes(t, span, map[string]string{"http.request.method": "GET", "url.path": "/v1/x", "url.scheme": "http", "user_agent.original": "curl"})
			if span.Kind != "server" || span.Failed != tt.failed {
				t.Errorf("got %+v", span)
			}
		})
	}
}

func TestAHandlerWithASpanCanFlush(t *testing.T) {
	tracing, _ := start(t, everything, &http.Client{Transport: roundTripper(refuse)})
	defer tracing.Shutdown(t.Context())
	w := httptest.NewRecorder()
	tracing.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}), named("call")).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if !w.Flushed {
		t.Error("nothing was flushed")
	}
}

func TestTheSpanOfARequestSaysWhatBecameOfIt(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		answer roundTripper
		want   map[string]string
		failed bool
	}{
		"an answer": {
			func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader("hello")), Request: r}, nil
			},
			map[string]string{"http.response.status_code": "201", "error.type": ""},
			false,
		},
		"a refusal": {
			func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody, Request: r}, nil
			},
			map[string]string{"http.response.status_code": "429", "error.type": "429"},
			true,
		},
		"no answer": {
			func(*http.Request) (*http.Response, error) { return nil, broken },
			map[string]string{"http.response.status_code": "", "error.type": "*errors.errorString"},
			true,
		},
		"an answer that breaks off": {
			func(r *http.Request) (*http.Response, error) {
				body := io.MultiReader(strings.NewReader("hel"), failing{broken})
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
			},
			map[string]string{"http.response.status_code": "200", "error.type": "*errors.errorString"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := collector(t)
			tracing, _ := start(t, telemetry.TraceConfig{OTLPEndpoint: r.URL, TraceRatio: 1}, nil)
			ctx, span := tracing.Start(t.Context(), "call")
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://user:hunter2@source.invalid/apis?x=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tracing.Transport(tt.answer, named("request")).RoundTrip(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			span.End()
			tracing.Shutdown(t.Context())
			got := only(t, r, "request")
			wantAttributes(t, got, tt.want)
			wantAttributes(t, got, map[string]string{
				"http.request.method": "POST", "server.address": "source.invalid", "server.port": "443", "url.full": "https://user:xxxxx@source.invalid/apis?x=1",
			})
			if got.Kind != "client" || got.Failed != tt.failed || got.Parent != only(t, r, "call").ID {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// failing is a body that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
