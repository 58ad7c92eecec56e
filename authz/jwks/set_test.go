package jwks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
)

func verdict(t testing.TB, keys *jwks.Set, p pair, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	payload, err := keys.Verify(ctx, p.sign(t, nil), authn.ForWrite, jwks.FetchTimeout)
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", p.kid, err, want)
	}
	if (payload != nil) != (err == nil) || err == nil && string(payload) != `{"sub":"jo"}` {
		t.Errorf("%s: payload %q with %v", p.kid, payload, err)
	}
}

func TestAKeyThatIsAddedCountsAtOnceAndOneThatIsTakenAwaySoon(t *testing.T) {
	old, next := newPair(t, "old", "ES256"), newPair(t, "next", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, old.public())}
		keys := start(t, issuer, nil)
		verdict(t, keys, old, nil)
		time.Sleep(time.Minute) // of the bubble's clock
		issuer.becomes(set(t, old.public(), next.public()), nil)
		verdict(t, keys, next, nil)
		verdict(t, keys, old, nil)
		issuer.becomes(set(t, next.public()), nil)
		time.Sleep(jwks.Refresh + time.Second)
		verdict(t, keys, old, jwks.ErrUnknownKey)
		verdict(t, keys, next, nil)
	})
}

func TestAKeyThatIsReplacedUnderItsNameCountsSoon(t *testing.T) {
	before, after := newPair(t, "same", "ES256"), newPair(t, "same", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, before.public())}
		keys := start(t, issuer, nil)
		verdict(t, keys, after, jwks.ErrSignature)
		issuer.becomes(set(t, after.public()), nil)
		time.Sleep(jwks.Refresh + time.Second)
		verdict(t, keys, after, nil)
		verdict(t, keys, before, jwks.ErrSignature)
	})
}

func TestAFloodOfUnknownKeysReadsNoMoreOftenThanAllowed(t *testing.T) {
	good, bad := newPair(t, "good", "ES256"), newPair(t, "bad", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, good.public()), takes: 100 * time.Millisecond}
		keys := start(t, issuer, nil)
		verdict(t, keys, good, nil)
		begin, before := time.Now(), issuer.readings()
		for range 600 { // a minute of ten unknown keys in every tenth of a second
			done := make(chan struct{})
			for i := range 10 {
				go func() {
					defer func() { done <- struct{}{} }()
					verdict(t, keys, pair{kid: fmt.Sprint("made-up-", i), alg: bad.alg, private: bad.private}, jwks.ErrUnknownKey)
				}()
			}
			for range 10 {
				<-done
			}
			verdict(t, keys, good, nil) // never waits
			time.Sleep(100 * time.Millisecond)
		}
		most := int(time.Since(begin)/jwks.Spacing) + 1
		if n := issuer.readings() - before; n < 2 || n > most {
			t.Errorf("%d readings in %s, want 2 to %d", n, time.Since(begin), most)
		}
	})
}

func TestAnIssuerThatIsAwayKeepsItsLastKeysAndThatShows(t *testing.T) {
	good, other := newPair(t, "good", "ES256"), newPair(t, "other", "ES256")
	for name, answer := range map[string]struct {
		body []byte
		err  error
	}{
		"nobody there":         {nil, errAway},
		"garbage":              {[]byte("<html>"), nil},
		"an empty answer":      {[]byte{}, nil},
		"another document":     {[]byte(`{"error":"x"}`), nil},
		"null":                 {[]byte("null"), nil},
		"keys that are null":   {[]byte(`{"keys":null}`), nil},
		"two lists of keys":    {[]byte(`{"keys":[],"keys":[]}`), nil},
		"a list in small type": {[]byte(`{"Keys":[]}`), nil},
		"far too many keys":    {[]byte(`{"keys":[` + strings.Repeat(`{},`, 64) + `{}]}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				issuer := &server{body: set(t, good.public())}
				keys := start(t, issuer, jwks.NewMetrics(reg))
				verdict(t, keys, good, nil)
				issuer.becomes(answer.body, answer.err)
				time.Sleep(24 * time.Hour)
				verdict(t, keys, good, nil)
				verdict(t, keys, other, jwks.ErrUnknownKey)
				synctest.Wait()
				if age := gauge(t, reg, "glidepath_authz_issuer_keys_age_seconds"); age < (24 * time.Hour).Seconds() {
					t.Errorf("the keys' age is %v s", age)
				}
				if n := gauge(t, reg, "glidepath_authz_issuer_keys"); n != 1 {
					t.Errorf("%v keys", n)
				}
				issuer.becomes(set(t, other.public()), nil)
				time.Sleep(jwks.Spacing)
				synctest.Wait()
				verdict(t, keys, other, nil)
				verdict(t, keys, good, jwks.ErrUnknownKey)
				if age := gauge(t, reg, "glidepath_authz_issuer_keys_age_seconds"); age > jwks.Spacing.Seconds() {
					t.Errorf("the new keys' age is %v s", age)
				}
			})
		})
	}
}

func gauge(t testing.TB, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestReadingsAreCounted(t *testing.T) {
	good := newPair(t, "good", "ES256")
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		issuer := &server{err: errAway}
		start(t, issuer, jwks.NewMetrics(reg))
		synctest.Wait()
		issuer.becomes(set(t, good.public()), nil)
		time.Sleep(2 * time.Second)
		want := `
# HELP glidepath_authz_issuer_key_reads_total Readings of an issuer's keys. One that failed changes no keys.
# TYPE glidepath_authz_issuer_key_reads_total counter
glidepath_authz_issuer_key_reads_total{issuer="test",result="failed"} 1
glidepath_authz_issuer_key_reads_total{issuer="test",result="read"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "glidepath_authz_issuer_key_reads_total"); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutAnyKeysThereIsNoVerdictUntilTheIssuerIsThere(t *testing.T) {
	good := newPair(t, "good", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{err: errAway}
		keys := start(t, issuer, nil)
		for range 50 {
			verdict(t, keys, good, jwks.ErrNoKeys)
		}
		if keys.Known() {
			t.Error("keys are known")
		}
		if n := issuer.readings(); n > 2 {
			t.Errorf("%d readings within a second", n)
		}
		issuer.becomes(set(t, good.public()), nil)
		time.Sleep(2 * time.Second)
		verdict(t, keys, good, nil)
		if !keys.Known() {
			t.Error("no keys are known")
		}
	})
}

func TestACallWaitsForASlowIssuerNoLongerThanItMay(t *testing.T) {
	good, next := newPair(t, "good", "ES256"), newPair(t, "next", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, good.public()), takes: 3 * time.Second}
		keys := start(t, issuer, nil)
		begin := time.Now()
		verdict(t, keys, good, jwks.ErrNoKeys)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("waited %s", took)
		}
		verdict(t, keys, good, nil) // waits for the rest of the same reading
		if n := issuer.readings(); n != 1 {
			t.Errorf("%d readings", n)
		}
		time.Sleep(jwks.Spacing)
		issuer.becomes(set(t, good.public(), next.public()), nil)
		issuer.slow(time.Hour) // which ends at the bound of a reading
		verdict(t, keys, next, jwks.ErrUnknownKey)
		verdict(t, keys, good, nil)
	})
}

func TestOnlySoManyCallsWait(t *testing.T) {
	good, bad := newPair(t, "good", "ES256"), newPair(t, "bad", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, good.public())}
		keys := start(t, issuer, nil)
		verdict(t, keys, good, nil)
		time.Sleep(jwks.Spacing)
		issuer.slow(time.Hour)
		forged := bad.sign(t, nil)
		var at [2]int // answered at once, and after waiting
		answers := make(chan time.Duration)
		begin := time.Now()
		for range 400 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if _, err := keys.Verify(ctx, forged, authn.ForWrite, jwks.FetchTimeout); !errors.Is(err, jwks.ErrUnknownKey) {
					t.Error(err)
				}
				answers <- time.Since(begin)
			}()
		}
		for range 400 {
			if took := <-answers; took == 0 {
				at[0]++
			} else {
				at[1]++
			}
		}
		if at != [2]int{400 - 256, 256} {
			t.Errorf("answered at once and after waiting: %v", at)
		}
	})
}

// A set that says that there are no keys is believed: it is how an issuer
// withdraws them all.
func TestAnIssuerMayWithdrawEverything(t *testing.T) {
	good := newPair(t, "good", "ES256")
	synctest.Test(t, func(t *testing.T) {
		issuer := &server{body: set(t, good.public())}
		keys := start(t, issuer, nil)
		verdict(t, keys, good, nil)
		issuer.becomes([]byte(`{"keys":[]}`), nil)
		time.Sleep(jwks.Refresh + time.Second)
		verdict(t, keys, good, jwks.ErrUnknownKey)
	})
}

func TestACallAfterTheEndIsAnswered(t *testing.T) {
	good := newPair(t, "good", "ES256")
	synctest.Test(t, func(t *testing.T) {
		keys := jwks.New(jwks.Config{Name: "test", Source: &server{body: set(t, good.public())}})
		verdict(t, keys, good, jwks.ErrNoKeys) // Run has not begun
		ctx, cancel := context.WithCancel(t.Context())
		go keys.Run(ctx)
		verdict(t, keys, good, nil)
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour)
		verdict(t, keys, newPair(t, "bad", "ES256"), jwks.ErrUnknownKey)
		verdict(t, keys, good, nil)
	})
}
