package extauthz_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
)

// BenchmarkRemembered is what it costs to know again whose token it is, for a
// read: alone, and where people sign in too.
func BenchmarkRemembered(b *testing.B) {
	s := &apifake.Server{}
	secret := longToken("reader")
	s.AcceptUser(secret, "reader")
	client, err := review.NewClient(s.Config())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	tokens, err := review.NewTokens(client, slots, review.NewMetrics(prometheus.NewRegistry(), slots), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(tokens.Close)
	tok, err := token.FromHeaders(authorization("Bearer " + secret))
	if err != nil {
		b.Fatal(err)
	}
	for name, people := range map[string]map[string]authn.Authenticator{
		"the cluster alone": nil, "and people": {"https://people.example": nobody{}},
	} {
		b.Run(name, func(b *testing.B) {
			a := authn.ByIssuer{Issuers: people, Default: tokens}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), tok, authn.ForRead); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// nobody is an authenticator of which no token is.
type nobody struct{ authn.Authenticator }

func (nobody) Remembered(token.Token) (*authn.Caller, bool) { return nil, false }

type authorization string

func (a authorization) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return string(a), 1
}
