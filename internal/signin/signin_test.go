package signin_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/signin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://dex.example/dex"

// idToken is a token as far as this side reads one.
func idToken(login string, expires time.Time) string {
	claims := fmt.Sprintf(`{"preferred_username":%q,"exp":%d}`, login, expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// dex answers as the real one does: what is said to each poll in turn, the last
// of them for ever.
type dex struct {
	discovery, device string
	polls             []string // an OAuth error, or a whole answer

	mu    sync.Mutex
	begin time.Time
	at    []time.Duration // of the polls
	forms []string
}

func newDex(polls ...string) *dex {
	return &dex{
		discovery: `{"issuer":"` + issuer + `","token_endpoint":"` + issuer + `/token","device_authorization_endpoint":"` + issuer + `/device/code"}`,
		device: `{"device_code":"wojt3ltzuax3bzcpmvlq","user_code":"KVGT-BZKT","verification_uri":"` + issuer + `/device",` +
			`"verification_uri_complete":"` + issuer + `/device?user_code=KVGT-BZKT","expires_in":300,"interval":5}`,
		polls: polls, begin: time.Now(),
	}
}

func (d *dex) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status, body := http.StatusOK, ""
	switch r.URL.Path {
	case "/dex/.well-known/openid-configuration":
		body = d.discovery
	case "/dex/device/code":
		body = d.device
	case "/dex/token":
		form, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		d.forms = append(d.forms, string(form))
		d.at = append(d.at, time.Since(d.begin))
		body = d.polls[min(len(d.at), len(d.polls))-1]
		if !strings.HasPrefix(body, "{") {
			status, body = http.StatusBadRequest, `{"error":"`+body+`"}`
		}
	default:
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

func login(ctx context.Context, d *dex) (signin.Token, signin.Prompt, error) {
	var shown signin.Prompt
	t, err := signin.Login(ctx, signin.Config{Issuer: issuer, Client: "glidepath-api", Transport: d, Show: func(p signin.Prompt) { shown = p }})
	return t, shown, err
}

func TestAPersonSignsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := idToken("jo-hub", time.Now().Add(time.Hour))
		d := newDex("authorization_pending", "slow_down", "authorization_pending", `{"access_token":"x","token_type":"bearer","expires_in":3599,"id_token":"`+token+`"}`)
		got, shown, err := login(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if got.Secret() != token || got.Login != "jo-hub" || time.Until(got.Expires) < 50*time.Minute {
			t.Errorf("got %+v", got)
		}
		if shown.Code != "KVGT-BZKT" || shown.Address != issuer+"/device" || !strings.HasSuffix(shown.Complete, "?user_code=KVGT-BZKT") {
			t.Errorf("shown %+v", shown)
		}
		// Every five seconds, and every ten once that was too fast.
		if want := fmt.Sprint([]time.Duration{5e9, 10e9, 20e9, 30e9}); fmt.Sprint(d.at) != want {
			t.Errorf("polled at %v, want %s", d.at, want)
		}
		if form := d.forms[0]; !strings.Contains(form, "client_id=glidepath-api") || !strings.Contains(form, "device_code=wojt3ltzuax3bzcpmvlq") {
			t.Errorf("sent %s", form)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", got, got, got, got); strings.Contains(s, token) {
			t.Errorf("the token shows: %s", s)
		}
	})
}

func TestASignInThatEndsOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*dex)
		want   string
	}{
		"denied":                        {func(d *dex) { d.polls = []string{"authorization_pending", "access_denied"} }, signin.ErrDenied.Error()},
		"expired":                       {func(d *dex) { d.polls = []string{"expired_token"} }, signin.ErrExpired.Error()},
		"never answered":                {func(*dex) {}, signin.ErrExpired.Error()},
		"a code that is not known":      {func(d *dex) { d.polls = []string{"invalid_request"} }, "invalid_request"},
		"an answer without an ID token": {func(d *dex) { d.polls = []string{`{"access_token":"x","token_type":"bearer"}`} }, "no ID token"},
		"a provider of another name":    {func(d *dex) { d.discovery = `{"issuer":"https://other"}` }, "calls itself"},
		"a provider without the flow":   {func(d *dex) { d.discovery = `{"issuer":"` + issuer + `","token_endpoint":"x"}` }, "no device flow"},
		"a provider that is none":       {func(d *dex) { d.discovery = `<html>` }, "no configuration"},
		"a code that moves the cursor":  {func(d *dex) { d.device = strings.Replace(d.device, "KVGT-BZKT", `\u001b[2J`, 1) }, "cannot be shown"},
		"an address that is a command":  {func(d *dex) { d.device = strings.ReplaceAll(d.device, "https:", "file:") }, "no address"},
		"no code":                       {func(d *dex) { d.device = `{}` }, "no code"},
		"a login that moves the cursor ": {func(d *dex) {
			d.polls = []string{`{"access_token":"x","id_token":"` + idToken("\x1b[2J", time.Now()) + `"}`}
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDex("authorization_pending")
				tc.change(d)
				got, _, err := login(t.Context(), d)
				if err == nil || !strings.Contains(err.Error(), tc.want) || got.Secret() != "" {
					t.Errorf("got %v, %v", got, err)
				}
				if took := time.Since(d.begin); took > 5*time.Minute+time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestASignInIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(12*time.Second, cancel)
		d := newDex("authorization_pending")
		if _, _, err := login(ctx, d); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(d.begin); took != 12*time.Second {
			t.Errorf("took %s", took)
		}
	})
}
