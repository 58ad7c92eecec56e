package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/ports"
)

// awayIssuer is an issuer that can be away, and back at the same address.
type awayIssuer struct {
	*issuer
	addr   string
	server *httptest.Server // nil while connections are refused
}

// reserveIssuer gives an issuer that does not answer yet.
func reserveIssuer(t *testing.T) *awayIssuer {
	t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	i := &awayIssuer{issuer: newIssuer(t, tableKey), addr: port.Addr()}
	i.url = "http://" + i.addr
	t.Cleanup(i.stop)
	return i
}

func (i *awayIssuer) stop() {
	if i.server != nil {
		i.server.Close()
		i.server = nil
	}
}

// serve answers so from now on; nil refuses connections.
func (i *awayIssuer) serve(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	i.stop()
	if answer == nil {
		return
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", i.addr)
	if err != nil {
		t.Fatal(err)
	}
	i.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: answer, ReadHeaderTimeout: callTimeout}}
	i.server.Start()
}

// outage is a way of being away, and what authz's log says of it.
type outage struct {
	name, logged string
	answer       http.HandlerFunc
}

func (i *awayIssuer) outages(t *testing.T) []outage {
	t.Helper()
	return []outage{
		{"connections are refused", "connection refused", nil},
		{"it answers 500 with its keys", "answered 500", serveKeys(t, http.StatusInternalServerError, i.issuer)},
		{"it answers garbage", "not the JSON of a key set", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, garbage) }},
	}
}

// keysEventually is eventually with more patience and fewer calls: authz asks an
// issuer whose keys it knows at most once in ten seconds.
func keysEventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-tick.C
	}
}

// keysOf is what an authz tells of the keys of people's issuer.
type keysOf struct{ known, age, failed float64 }

func issuerKeys(t *testing.T, e *devenv.Edge) keysOf {
	t.Helper()
	families, people := scrape(t, e.AuthzMetrics), map[string]string{"issuer": "people"}
	age := labelled(families["glidepath_authz_issuer_keys_age_seconds"], people)
	if age == nil {
		t.Fatal("the age of the keys is not among the metrics")
	}
	return keysOf{
		known:  labelled(families["glidepath_authz_issuer_keys"], people).GetGauge().GetValue(),
		age:    age.GetGauge().GetValue(),
		failed: labelled(families["glidepath_authz_issuer_key_reads_total"], map[string]string{"issuer": "people", "result": "failed"}).GetCounter().GetValue(),
	}
}

// unreadKeys gives the errors with which an authz logged that it could not read
// the keys of people's issuer.
func unreadKeys(t *testing.T, e *devenv.Edge) []string {
	t.Helper()
	raw, err := os.ReadFile(e.Authz.Log())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for text := range bytes.Lines(raw) {
		var l struct{ Msg, Issuer, Error string }
		if json.Unmarshal(text, &l) == nil && l.Issuer == "people" && strings.HasPrefix(l.Msg, "the issuer's keys cannot be read") {
			found = append(found, l.Error)
		}
	}
	return found
}

func whoamiAt(t *testing.T, e *devenv.Edge, token string) answer {
	t.Helper()
	return quickly(t, func() answer { return call(t, http.MethodGet, e.URL+calls["whoami"], bearer(token)) })
}

// Each outage has an edge of its own: an authz logs the first failure of many,
// and asks the issuer at most once in ten seconds.
func TestPeopleWhoseKeyIsKnownStayWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	const login = "e2e-away"
	i := reserveIssuer(t)
	newer := newIssuer(t, "e2e-newer-key")
	newer.url = i.url
	i.serve(t, serveKeys(t, http.StatusOK, i.issuer))
	outages := i.outages(t)
	g := startPeopleEdges(t, len(outages), i.issuer, login)
	for _, e := range g.Edges {
		keysEventually(t, "the keys are known", func() bool { return whoamiAt(t, e, i.token(t, login, nil)).status == http.StatusOK })
	}
	for n, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			e := g.Edges[n]
			i.serve(t, o.answer)
			away := time.Now()
			keysEventually(t, "the issuer is asked for a key that is not known", func() bool {
				refused(t, whoamiAt(t, e, newer.token(t, login, nil)), 401, "GP-AUTH-002")
				return issuerKeys(t, e).failed > 0
			})
			staysForPeople(t, e, i.issuer, login)
			least := time.Since(away).Seconds()
			if k := issuerKeys(t, e); k.known != 1 || k.age < least {
				t.Errorf("the metrics tell %+v, and the issuer has been away for %.1f s", k, least)
			}
			eventually(t, "the log says why the keys could not be read", func() bool { return len(unreadKeys(t, e)) > 0 })
			if said := unreadKeys(t, e); len(said) != 1 || !strings.Contains(said[0], o.logged) {
				t.Errorf("the log says %q, want one that has %q", said, o.logged)
			}
		})
	}
	back := time.Now()
	i.serve(t, serveKeys(t, http.StatusOK, i.issuer, newer))
	for _, e := range g.Edges {
		keysEventually(t, "the newer key is known", func() bool { return whoamiAt(t, e, newer.token(t, login, nil)).status == http.StatusOK })
		staysForPeople(t, e, i.issuer, login)
		if k := issuerKeys(t, e); k.known != 2 || k.age > time.Since(back).Seconds() {
			t.Errorf("the metrics tell %+v, and the issuer is back since %s", k, time.Since(back))
		}
	}
}

// staysForPeople holds that tokens which nobody remembers are judged as ever.
func staysForPeople(t *testing.T, e *devenv.Edge, i *issuer, login string) {
	t.Helper()
	forger := newIssuer(t, i.kid)
	forger.url = i.url
	ok(t, whoamiAt(t, e, i.token(t, login, nil)))
	ok(t, whoamiAt(t, e, newToken(t, "reader")))
	refused(t, whoamiAt(t, e, forger.token(t, login, nil)), 401, "GP-AUTH-002")
}

func TestAnIssuerThatNeverAnsweredLetsNobodyInUntilItDoes(t *testing.T) {
	t.Parallel()
	const login = "e2e-never"
	i := reserveIssuer(t)
	forger := newIssuer(t, "made-up")
	forger.url = i.url
	g := startPeople(t, i.issuer, login)
	e := g.Edges[0]
	for _, o := range i.outages(t) {
		t.Run(o.name, func(t *testing.T) {
			i.serve(t, o.answer)
			before := issuerKeys(t, e).failed
			// The first of two may have begun before.
			keysEventually(t, "the issuer is asked", func() bool { return issuerKeys(t, e).failed >= before+2 })
			for _, token := range []string{i.token(t, login, nil), forger.token(t, login, nil)} {
				refused(t, whoamiAt(t, e, token), 502, "GP-API-502")
				for _, c := range []struct{ method, op string }{{"GET", "listLive"}, {"POST", "cancelPipelineRun"}} {
					refused(t, quickly(t, func() answer { return call(t, c.method, e.URL+calls[c.op], bearer(token)) }), 502, "GP-API-502")
				}
			}
			ok(t, whoamiAt(t, e, newToken(t, "reader")))
			ok(t, call(t, http.MethodGet, e.URL+calls["listLive"], bearer(newToken(t, "reader"))))
			if k := issuerKeys(t, e); k.known != 0 {
				t.Errorf("the metrics tell of %v keys", k.known)
			}
		})
	}
	if said := unreadKeys(t, e); len(said) != 1 || !strings.Contains(said[0], "connection refused") {
		t.Errorf("the log says %q", said)
	}
	i.serve(t, serveKeys(t, http.StatusOK, i.issuer))
	keysEventually(t, "people sign in", func() bool { return whoamiAt(t, e, i.token(t, login, nil)).status == http.StatusOK })
	refused(t, whoamiAt(t, e, forger.token(t, login, nil)), 401, "GP-AUTH-002")
	ok(t, whoamiAt(t, e, newToken(t, "reader")))
}
