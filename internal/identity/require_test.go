package identity_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/internal/identity"
)

// backend is a server behind Require that counts what gets through.
type backend struct {
	*httptest.Server
	served atomic.Int32
}

// serve starts a backend whose every request is of the operation that its
// header names.
func (k keys) serve(t *testing.T, shared identity.Once) *backend {
	t.Helper()
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: k.publicDir, Backend: "writes", Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	b := new(backend)
	op := func(r *http.Request) string { return r.Header.Get("X-Op") }
	b.Server = httptest.NewServer(identity.Require(v, op, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { b.served.Add(1) })))
	t.Cleanup(b.Close)
	return b
}

// call makes one call and gives the status and the answer.
func (b *backend) call(t *testing.T, method, target, op, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Op", op)
	req.Header.Set(identity.Header, token)
	resp, err := b.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const cancelTarget = "/v1/apps/shop/pipelineruns/a/cancel?dryRun=true"

// cancel gives the identity of one write.
func cancel(id string, change func(*identity.Claims)) identity.Claims {
	return claims(func(c *identity.Claims) {
		c.Audience, c.ID, c.Op, c.Tier, c.Method = jwt.ClaimStrings{"writes"}, id, "cancelPipelineRun", "T1", http.MethodPost
		c.TargetHash = identity.HashTarget(cancelTarget)
		if change != nil {
			change(c)
		}
	})
}

func read(op, app string) identity.Claims {
	return claims(func(c *identity.Claims) {
		c.Audience, c.Op, c.App = jwt.ClaimStrings{"writes"}, op, app
		if app == "" {
			c.Namespace, c.NamespaceUID = "", ""
		}
	})
}

func TestABackendTakesAnIdentityForExactlyWhatWasDecided(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	b, s := k.serve(t, nil), k.signer(t)
	for name, tc := range map[string]struct {
		claims             identity.Claims
		method, target, op string
		status             int
	}{
		"a write as decided":              {cancel("w1", nil), "POST", cancelTarget, "cancelPipelineRun", 200},
		"a write for another backend":     {cancel("w2", func(c *identity.Claims) { c.Audience = jwt.ClaimStrings{"runs"} }), "POST", cancelTarget, "cancelPipelineRun", 401},
		"a write as another operation":    {cancel("w3", nil), "POST", cancelTarget, "rerunPipelineRun", 401},
		"a write as no operation":         {cancel("w4", nil), "POST", cancelTarget, "", 401},
		"a write with another method":     {cancel("w5", nil), "PUT", cancelTarget, "cancelPipelineRun", 401},
		"a write on another path":         {cancel("w6", nil), "POST", strings.Replace(cancelTarget, "/a/", "/b/", 1), "cancelPipelineRun", 401},
		"a write in another app":          {cancel("w7", nil), "POST", strings.Replace(cancelTarget, "shop", "gate-api", 1), "cancelPipelineRun", 401},
		"a write with another query":      {cancel("w8", nil), "POST", strings.Replace(cancelTarget, "true", "false", 1), "cancelPipelineRun", 401},
		"a write without its query":       {cancel("w9", nil), "POST", "/v1/apps/shop/pipelineruns/a/cancel", "cancelPipelineRun", 401},
		"a write with more of a query":    {cancel("w10", nil), "POST", cancelTarget + "&a=b", "cancelPipelineRun", 401},
		"a write that is bound to no app": {cancel("w11", func(c *identity.Claims) { c.App, c.Namespace, c.NamespaceUID = "", "", "" }), "POST", cancelTarget, "cancelPipelineRun", 401},
		"a write that is bound to nothing": {
			cancel("w12", func(c *identity.Claims) { c.Method, c.TargetHash = "", "" }), "POST", cancelTarget, "cancelPipelineRun", 401,
		},
		"a read of an app":                         {read("listLive", "shop"), "GET", "/v1/apps/shop/live", "listLive", 200},
		"a read of an app with any query":          {read("listLive", "shop"), "GET", "/v1/apps/shop/live?limit=5", "listLive", 200},
		"a read of another app":                    {read("listLive", "shop"), "GET", "/v1/apps/gate-api/live", "listLive", 401},
		"a read of an app that is spelt otherwise": {read("listLive", "shop"), "GET", "/v1/apps/sh%6fp/live", "listLive", 401},
		"a read of an app, for all":                {read("listLive", ""), "GET", "/v1/apps/shop/live", "listLive", 401},
		"a read of the fleet":                      {read("listLiveRuns", ""), "GET", "/v1/live", "listLiveRuns", 200},
		"a read of the fleet, for one app":         {read("listLiveRuns", "shop"), "GET", "/v1/live", "listLiveRuns", 401},
		"one app of the fleet":                     {read("listLiveRuns", "shop"), "GET", "/v1/live?app=shop", "listLiveRuns", 200},
		"one app of the fleet, for another":        {read("listLiveRuns", "shop"), "GET", "/v1/live?app=gate-api", "listLiveRuns", 401},
		"one app of the fleet, for all":            {read("listLiveRuns", ""), "GET", "/v1/live?app=shop", "listLiveRuns", 401},
		"two apps of the fleet":                    {read("listLiveRuns", "shop"), "GET", "/v1/live?app=shop&app=gate-api", "listLiveRuns", 401},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.served.Load()
			status, body := b.call(t, tc.method, tc.target, tc.op, sign(t, s, tc.claims))
			if status != tc.status || (b.served.Load() > before) != (tc.status == 200) {
				t.Errorf("got %d %s, want %d", status, body, tc.status)
			}
			if tc.status == 401 && !strings.Contains(body, `"GP-EDGE-401"`) {
				t.Errorf("got %s", body)
			}
		})
	}
}

// memory is what replicas share, as an in-memory Redis.
type memory struct {
	mu   sync.Mutex
	ids  map[string]bool
	end  time.Time // of the last one
	fail error
}

func (m *memory) First(_ context.Context, id string, end time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil || !end.After(time.Now()) {
		return false, errors.Join(m.fail, errors.New("cannot tell"))
	}
	first := !m.ids[id]
	m.ids[id], m.end = true, end
	return first, nil
}

func TestTheIdentityOfAWriteIsGoodForOneCall(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	s := k.signer(t)
	shared := &memory{ids: map[string]bool{}}
	alone, one, two := k.serve(t, nil), k.serve(t, shared), k.serve(t, shared)
	for name, replicas := range map[string][]*backend{"one replica": {alone, alone}, "two replicas": {one, two}} {
		t.Run(name, func(t *testing.T) {
			token := sign(t, s, cancel(name, nil))
			// What is refused for something else does not use it up.
			if status, _ := replicas[1].call(t, "POST", cancelTarget+"&x=y", "cancelPipelineRun", token); status != 401 {
				t.Fatal(status)
			}
			if status, body := replicas[0].call(t, "POST", cancelTarget, "cancelPipelineRun", token); status != 200 {
				t.Fatalf("the first call: %d %s", status, body)
			}
			for range 2 {
				if status, body := replicas[1].call(t, "POST", cancelTarget, "cancelPipelineRun", token); status != 401 || !strings.Contains(body, "made before") {
					t.Errorf("the call again: %d %s", status, body)
				}
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		token, before := sign(t, s, cancel("at once", nil)), one.served.Load()+two.served.Load()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { []*backend{one, two}[i%2].call(t, "POST", cancelTarget, "cancelPipelineRun", token) })
		}
		all.Wait()
		if n := one.served.Load() + two.served.Load() - before; n != 1 {
			t.Errorf("served %d times", n)
		}
	})
	t.Run("a read is not", func(t *testing.T) {
		token := sign(t, s, read("listLive", "shop"))
		for range 3 {
			if status, body := one.call(t, "GET", "/v1/apps/shop/live", "listLive", token); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		}
	})
}

func TestAnIdentityIsRememberedForAsLongAsAnyReplicaTakesIt(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	shared := &memory{ids: map[string]bool{}}
	var expires time.Time
	token := sign(t, k.signer(t), cancel("w1", func(c *identity.Claims) { expires = c.ExpiresAt.Time }))
	if status, body := k.serve(t, shared).call(t, "POST", cancelTarget, "cancelPipelineRun", token); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	// One replica's clock may be ahead by the leeway, and another's behind by as much.
	if got, want := shared.end, expires.Add(3*identity.Leeway).Truncate(time.Second); got.Before(want) {
		t.Errorf("it is forgotten at %s, and another replica takes it until %s", got, want)
	}
}

func TestAWriteOfWhichNobodyCanTellIsRefused(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	shared := &memory{ids: map[string]bool{}, fail: errors.New("away")}
	b := k.serve(t, shared)
	if status, body := b.call(t, "POST", cancelTarget, "cancelPipelineRun", sign(t, k.signer(t), cancel("w1", nil))); status != 502 || !strings.Contains(body, `"GP-API-502"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := b.call(t, "GET", "/v1/apps/shop/live", "listLive", sign(t, k.signer(t), read("listLive", "shop"))); status != 200 {
		t.Errorf("a read: %d %s", status, body)
	}
}

// The clock of authz is five minutes off, either way: nobody gets in, and the
// answer is not that the call went round the edge.
func TestClocksThatAreApartLetNobodyIn(t *testing.T) {
	k := newKeys(t)
	for name, off := range map[string]time.Duration{"fast": 5 * time.Minute, "slow": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			logs := captureLogs(t)
			b := k.serve(t, nil)
			token := sign(t, k.signer(t), claims(func(c *identity.Claims) {
				c.Audience = jwt.ClaimStrings{"writes"}
				c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(off), identity.MaxLifetime)
			}))
			status, body := b.call(t, "GET", "/v1/apps/shop/live", "listLive", token)
			if status != 401 || !strings.Contains(body, `"GP-EDGE-401"`) || !strings.Contains(body, "clocks") {
				t.Errorf("%d %s", status, body)
			}
			if line := logs(); !strings.Contains(line, "clocks of authz and of this process differ") || strings.Contains(line, token) {
				t.Errorf("the log says %q", line)
			}
			if b.served.Load() != 0 {
				t.Error("served")
			}
		})
	}
	logs := captureLogs(t)
	other := newKeys(t)
	forged := sign(t, other.signer(t), claims(func(c *identity.Claims) {
		c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(time.Hour), identity.MaxLifetime)
	}))
	k.serve(t, nil).call(t, "GET", "/v1/apps/shop/live", "listLive", forged)
	if line := logs(); strings.Contains(line, "clocks") {
		t.Errorf("a token that nobody signed counts as one of another time: %q", line)
	}
}

func TestClocksMayDifferByTheLeeway(t *testing.T) {
	k := newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		v := k.verifier(t, "livehub")
		for _, off := range []time.Duration{identity.Leeway - time.Second, -identity.MaxLifetime - identity.Leeway + time.Second} {
			token := sign(t, k.signer(t), claims(func(c *identity.Claims) {
				c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(off), identity.MaxLifetime)
			}))
			if _, err := v.Verify(token); err != nil {
				t.Errorf("%s: %v", off, err)
			}
		}
	})
}
