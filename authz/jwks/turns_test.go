package jwks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
)

func TestReadsThatTakeAllTurnsLeaveThoseOfWrites(t *testing.T) {
	p := newPair(t, "k", "ES256")
	good := p.sign(t, nil)
	synctest.Test(t, func(t *testing.T) {
		keys := start(t, &server{body: set(t, p.public())}, nil)
		synctest.Wait()
		verify := func(ctx context.Context, purpose authn.Purpose) error {
			_, err := keys.Verify(ctx, good, purpose, 0)
			return err
		}
		for _, busy := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
			free := authn.ForRead
			if busy == authn.ForRead {
				free = authn.ForWrite
			}
			back := keys.TakeTurns(busy)
			ctx, cancel := context.WithCancel(t.Context())
			answers := make(chan error, jwks.MaxTurns)
			for range jwks.MaxTurns {
				go func() { answers <- verify(ctx, busy) }()
			}
			synctest.Wait()
			if len(answers) > 0 {
				t.Fatalf("%d did not wait", len(answers))
			}
			err := verify(t.Context(), busy)
			if err == nil || errors.Is(err, jwks.ErrSignature) || errors.Is(err, jwks.ErrUnknownKey) || errors.Is(err, jwks.ErrNoKeys) {
				t.Errorf("one too many: %v", err)
			}
			if err := verify(t.Context(), free); err != nil {
				t.Errorf("of the other kind: %v", err)
			}
			back()
			for range jwks.MaxTurns {
				if err := <-answers; err != nil {
					t.Errorf("one that waited: %v", err)
				}
			}
			// One whose caller leaves gets no verdict.
			back = keys.TakeTurns(busy)
			cancel()
			if err := verify(ctx, busy); !errors.Is(err, context.Canceled) {
				t.Errorf("one that left: %v", err)
			}
			back()
		}
	})
}

func TestTheNameOfATokensKey(t *testing.T) {
	p := newPair(t, "k", "ES256")
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"as it is":                     {nil, "k"},
		"an algorithm that is refused": {func(h map[string]any) { h["alg"] = "none" }, ""},
		"a form that is refused":       {func(h map[string]any) { h["crit"] = []string{"b64"} }, ""},
		"no name":                      {func(h map[string]any) { delete(h, "kid") }, ""},
	} {
		if got := jwks.KeyID(p.sign(t, tc.change)); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := jwks.KeyID(bearer(t, "opaque")); got != "" {
		t.Errorf("no JWT: %q", got)
	}
}
