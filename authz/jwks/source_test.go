package jwks_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hangar.io/glidepath/authz/jwks"
)

// served runs a provider that answers with these handlers by path.
func served(t *testing.T, answers map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range answers {
		mux.HandleFunc(path, h)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

const discovery = "/dex/.well-known/openid-configuration"

func TestKeysAreDiscovered(t *testing.T) {
	var asked http.Header
	var s *httptest.Server
	s = served(t, map[string]http.HandlerFunc{
		discovery: func(w http.ResponseWriter, r *http.Request) {
			text(`{"issuer":"`+s.URL+`/dex","jwks_uri":"`+s.URL+`/dex/keys"}`)(w, r)
		},
		"/dex/keys": func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Clone()
			text(`{"keys":[]}`)(w, r)
		},
	})
	raw, err := jwks.Discover(s.Client().Transport, s.URL+"/dex").Fetch(t.Context())
	if err != nil || string(raw) != `{"keys":[]}` {
		t.Fatalf("got %q, %v", raw, err)
	}
	if accept := asked.Get("Accept"); !strings.Contains(accept, "application/jwk-set+json") {
		t.Errorf("asked for %q", accept)
	}
}

func TestAProviderThatIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"of another name":               {`{"issuer":"https://other.example","jwks_uri":"URL/keys"}`, "calls itself"},
		"of the same name with a slash": {`{"issuer":"URL/dex/","jwks_uri":"URL/keys"}`, "calls itself"},
		"without a name":                {`{"jwks_uri":"URL/keys"}`, "calls itself"},
		"that names itself twice":       {`{"issuer":"URL/dex","issuer":"URL/dex","jwks_uri":"URL/keys"}`, "not the JSON"},
		"that is HTML":                  {`<html>`, "not the JSON"},
		"without an address of keys":    {`{"issuer":"URL/dex"}`, "jwks_uri"},
		"with a file for an address":    {`{"issuer":"URL/dex","jwks_uri":"file:///etc/passwd"}`, "jwks_uri"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *httptest.Server
			s = served(t, map[string]http.HandlerFunc{
				discovery: func(w http.ResponseWriter, r *http.Request) {
					text(strings.ReplaceAll(tc.document, "URL", s.URL))(w, r)
				},
				"/keys": func(http.ResponseWriter, *http.Request) { t.Error("its keys were read") },
			})
			_, err := jwks.Discover(s.Client().Transport, s.URL+"/dex").Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKeysOfAnHTTPSIssuerAreNotReadInTheClear(t *testing.T) {
	plain := served(t, map[string]http.HandlerFunc{"/keys": func(http.ResponseWriter, *http.Request) { t.Error("its keys were read") }})
	var s *httptest.Server
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text(`{"issuer":"`+s.URL+`","jwks_uri":"`+plain.URL+`/keys"}`)(w, r)
	}))
	t.Cleanup(s.Close)
	if _, err := jwks.Discover(s.Client().Transport, s.URL).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("got %v", err)
	}
}

func TestAKeyServerThatAnswersSomethingElse(t *testing.T) {
	elsewhere := served(t, map[string]http.HandlerFunc{"/": func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }})
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a redirect":        {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "302"},
		"an error":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500"},
		"nothing":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "204"},
		"far too much":      {text(strings.Repeat(" ", 1<<20)), "more than"},
		"less than it says": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") }, "reading"},
	} {
		t.Run(name, func(t *testing.T) {
			s := served(t, map[string]http.HandlerFunc{"/keys": tc.answer})
			raw, err := jwks.At(s.Client().Transport, s.URL+"/keys").Fetch(t.Context())
			if err == nil || raw != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v", raw, err)
			}
		})
	}
}

func TestAReadingEndsWithItsContext(t *testing.T) {
	hung := make(chan struct{})
	s := served(t, map[string]http.HandlerFunc{"/keys": func(w http.ResponseWriter, r *http.Request) {
		close(hung)
		<-r.Context().Done()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hung
		cancel()
	}()
	if _, err := jwks.At(s.Client().Transport, s.URL+"/keys").Fetch(ctx); err == nil {
		t.Error("an answer from nobody")
	}
}

func TestCheckURL(t *testing.T) {
	for url, good := range map[string]bool{
		"https://dex.example/dex":         true,
		"http://dex.dex.svc:5556/dex":     true,
		"https://[::1]:5556/dex":          true,
		"":                                false,
		"dex.example":                     false,
		"ftp://dex.example":               false,
		"https://":                        false,
		"https://jo:secret@dex.example":   false,
		"https://dex.example/#part":       false,
		"https://dex.example/%zz":         false,
		"https://jo:secret@dex.example:x": false,
	} {
		err := jwks.CheckURL(url)
		if (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats a password: %v", err)
		}
	}
}
