package oidc

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Leeway is how far the issuer's clock and ours may be apart: so long a token is
// good before its beginning and after its end.
const Leeway = 30 * time.Second

// Bounds of what an issuer may say.
const (
	maxSubject   = 255 // OpenID Connect Core 1.0, section 2
	maxAudiences = 32
	// maxDate is the end of the year 9999, in seconds.
	maxDate = 253402300799
)

// claims are what is read of an ID token. The names count with their case, and
// one that stands twice makes the token unreadable: nobody else may find
// something else in it.
type claims struct {
	Issuer     string     `json:"iss"`
	Subject    string     `json:"sub"`
	Audiences  audiences  `json:"aud"`
	Party      *string    `json:"azp"`
	Expiry     *date      `json:"exp"`
	NotBefore  *date      `json:"nbf"`
	IssuedAt   *date      `json:"iat"`
	Login      string     `json:"preferred_username"`
	Federation federation `json:"federated_claims"`
}

// federation is what Dex tells of the account at the provider behind it, when it
// was asked for the scope federated:id.
type federation struct {
	UserID string `json:"user_id"`
}

func (c *claims) expiry() time.Time { return c.Expiry.time() }

// date is a NumericDate of RFC 7519: seconds, possibly with a fraction.
type date float64

func (d date) time() time.Time { return time.Unix(int64(d), 0) }

func (d *date) good() bool { return d != nil && *d > 0 && *d <= maxDate }

// audiences is a text or a list of them.
type audiences []string

// UnmarshalJSONFrom reads either form.
func (a *audiences) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		var one string
		if err := json.UnmarshalDecode(d, &one); err != nil {
			return err
		}
		*a = audiences{one}
		return nil
	}
	return json.UnmarshalDecode(d, (*[]string)(a))
}

// rules are what an ID token is held to.
type rules struct{ issuer, audience string }

// judge reads the payload of a token whose signature is good. Its errors are for
// the caller: they say what is wrong and repeat nothing.
func (r rules) judge(payload []byte, now time.Time) (*claims, error) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, errors.New("the ID token's claims cannot be read")
	}
	if c.Issuer != r.issuer {
		return nil, errors.New("the ID token is of another issuer")
	}
	if err := r.addressed(&c); err != nil {
		return nil, err
	}
	if c.Subject == "" || len(c.Subject) > maxSubject || strings.ContainsFunc(c.Subject, unprintable) {
		return nil, errors.New("the ID token has no usable subject")
	}
	return &c, c.current(now)
}

// unprintable says that a character has no place in a name that is logged and
// shown: a control, or one that turns or breaks the text around it.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// addressed says whether the token was made for this API. One that a trusted
// client got for itself and this API besides names that client as its party.
func (r rules) addressed(c *claims) error {
	other := errors.New("the ID token was made for another client")
	switch {
	case len(c.Audiences) > maxAudiences || !slices.Contains(c.Audiences, r.audience):
		return other
	case c.Party != nil && *c.Party != r.audience:
		return other
	case c.Party == nil && len(c.Audiences) > 1:
		return other // OpenID Connect Core 1.0, section 3.1.3.7, 4
	}
	return nil
}

// current says whether the token is good now.
func (c *claims) current(now time.Time) error {
	switch {
	case !c.Expiry.good() || !c.IssuedAt.good() || c.NotBefore != nil && !c.NotBefore.good():
		return errors.New("the ID token does not say properly when it is good")
	case !now.Before(c.Expiry.time().Add(Leeway)):
		return errors.New("the ID token has expired")
	case now.Add(Leeway).Before(c.IssuedAt.time()) || c.NotBefore != nil && now.Add(Leeway).Before(c.NotBefore.time()):
		return errors.New("the ID token is not good yet")
	}
	return nil
}
