package ticket_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/seal"
)

const secret = "very.secret.token"

type headers map[string]string

func (h headers) Get(name string) (string, int) {
	v, ok := h[name]
	if !ok {
		return "", 0
	}
	return v, 1
}

// issue gives the ticket of a call that sends its token in one header.
func issue(t testing.TB, id, target, app, tok string) ticket.Ticket {
	t.Helper()
	table, err := operation.NewTable(api.Operations())
	if err != nil {
		t.Fatal(err)
	}
	op, _ := table.Lookup(id)
	caller, err := authn.NewClusterCaller(authn.Facts{Username: "tower"})
	if err != nil {
		t.Fatal(err)
	}
	h := headers{"x-glidepath-authorization": "Bearer " + tok, "x-request-id": "r-1"}
	parsed, err := token.FromHeaders(h)
	if err != nil {
		t.Fatal(err)
	}
	d := &decision.Decision{Operation: op, Caller: caller, OnBehalfOf: "ana", App: app, Namespace: namespaces.Namespace{Name: "n", UID: "uid"}}
	return ticket.New(d, decision.Request{Operation: op, Method: "GET", Target: target, Headers: h}, parsed, time.Unix(1800000000, 0))
}

func keyFile(t testing.TB, fills ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, file, fills...)
	return file
}

func writeKeys(t testing.TB, file string, fills ...string) {
	t.Helper()
	var text strings.Builder
	for _, fill := range fills {
		text.WriteString(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, seal.KeySize))) + "\n")
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sealer(t testing.TB, file string) *ticket.Sealer {
	t.Helper()
	s, err := ticket.NewSealer(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATicketHoldsWhatDecidesItsCallAgain(t *testing.T) {
	for name, tc := range map[string]struct{ op, target, app, want string }{
		"of an app's stream":            {"streamLiveRuns", "/v1/apps/shop/live/stream?x=1", "shop", "/v1/apps/shop/live/stream"},
		"of the fleet's":                {"streamEvents", "/v1/events?type=a&since=b", "", "/v1/events"},
		"of the fleet's part of an app": {"streamEvents", "/v1/events?type=a&app=shop", "shop", "/v1/events?app=shop"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sealer(t, keyFile(t, "a"))
			text, err := s.Seal(issue(t, tc.op, tc.target, tc.app, secret))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Open(text)
			if err != nil {
				t.Fatal(err)
			}
			if got.Op != tc.op || got.Target != tc.want || got.Username != "tower" || got.OnBehalfOf != "ana" || got.NamespaceUID != "uid" ||
				got.RequestID != "r-1" || got.Opened.Unix() != 1800000000 {
				t.Errorf("got %+v", [...]string{got.Op, got.Target, got.Username, got.OnBehalfOf, got.NamespaceUID, got.RequestID})
			}
			tok, err := token.FromHeaders(got)
			if err != nil || tok.Secret() != secret {
				t.Errorf("the token: %v", err)
			}
			if person, times := got.Get(decision.OnBehalfOfHeader); person != "ana" || times != 1 {
				t.Errorf("on behalf of %q, %d times", person, times)
			}
			if _, times := got.Get("cookie"); times != 0 {
				t.Error("it has a cookie")
			}
		})
	}
}

func TestATicketShowsNothing(t *testing.T) {
	s := sealer(t, keyFile(t, "a"))
	tk := issue(t, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", secret)
	text, err := s.Seal(tk)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "ticket", tk)
	for where, shown := range map[string]string{"sealed": string(raw), "printed": fmt.Sprintf("%v %+v %#v %s", tk, tk, tk, tk), "logged": log.String()} {
		for _, secret := range []string{secret, "tower", "ana", "/v1/apps"} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s, it shows %s", where, secret)
			}
		}
	}
}

func TestTheLargestTokenFitsIntoATicket(t *testing.T) {
	s := sealer(t, keyFile(t, "a"))
	text, err := s.Seal(issue(t, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", strings.Repeat("t", token.MaxBytes)))
	if err != nil || len(text) > renewal.MaxTicketBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestWhatIsNoTicketDoesNotOpen(t *testing.T) {
	s := sealer(t, keyFile(t, "a"))
	good, err := s.Seal(issue(t, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", secret))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := seal.LoadKeys(keyFile(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := seal.New(keys, "livehub")
	if err != nil {
		t.Fatal(err)
	}
	here, err := seal.New(keys, "renewal")
	if err != nil {
		t.Fatal(err)
	}
	other, err := sealer(t, keyFile(t, "b")).Seal(issue(t, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", secret))
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for name, text := range map[string]string{
		"nothing":                         "",
		"no base64":                       "§",
		"a cut one":                       good[:len(good)-1],
		"one with a changed byte":         "A" + good[1:],
		"one of another key":              other,
		"what is sealed for another use":  b64(elsewhere.Seal(nil, []byte("{}"), "renewal ticket")),
		"what is sealed for another spot": b64(here.Seal(nil, []byte("{}"), "elsewhere")),
		"what is sealed and no ticket":    b64(here.Seal(nil, []byte("["), "renewal ticket")),
		"far too much":                    strings.Repeat("A", renewal.MaxTicketBytes+1),
	} {
		if _, err := s.Open(text); !errors.Is(err, ticket.ErrUnreadable) && !(name == "one with a changed byte" && strings.HasPrefix(good, "A")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Open(good); err != nil {
		t.Error(err)
	}
}

func TestKeysAreReplacedWhileTicketsAreAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := keyFile(t, "a")
		s := sealer(t, file)
		done := make(chan struct{})
		ctx := t.Context()
		go func() {
			defer close(done)
			s.Run(ctx)
		}()
		tk := issue(t, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", secret)
		seals := func() string {
			text, err := s.Seal(tk)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		opens := func(text string) bool {
			_, err := s.Open(text)
			return err == nil
		}
		after := func(fills ...string) {
			writeKeys(t, file, fills...)
			time.Sleep(11 * time.Second)
		}
		old := seals()
		after("b", "a")
		next := seals()
		if !opens(old) || !opens(next) {
			t.Error("during the overlap, both must open")
		}
		after("b")
		if opens(old) || !opens(next) {
			t.Error("without the old key, the new one alone must open")
		}
		after()
		if !opens(next) {
			t.Error("a file without a key is taken")
		}
	})
}

func FuzzOpen(f *testing.F) {
	s := sealer(f, keyFile(f, "a"))
	good, err := s.Seal(issue(f, "streamLiveRuns", "/v1/apps/shop/live/stream", "shop", secret))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(good)
	f.Add(good[1:])
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := s.Open(text); err == nil && text != good {
			t.Errorf("%q opens as %s", text, got.Op)
		}
	})
}
