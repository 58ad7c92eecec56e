package token

import (
	"encoding/base64"
	"encoding/json/v2"
	"strings"
	"time"
)

// Unverified is what a token claims of itself. Nobody has checked it: it may
// choose who checks the token and how soon a verdict on it is forgotten, and
// nothing else.
type Unverified struct {
	// Issuer is the iss claim; empty for a token that is no JWT.
	Issuer string
	// Expiry is the exp claim; zero when there is none.
	Expiry time.Time
}

// maxExpirySeconds is the end of the year 9999; an exp beyond it is no date.
const maxExpirySeconds = 253402300799

// Unverified reads the claims of a JWT without looking at its signature. A
// token that is no JWT gives the zero value.
func (t Token) Unverified() Unverified {
	_, rest, ok := strings.Cut(t.secret, ".")
	if !ok {
		return Unverified{}
	}
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return Unverified{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return Unverified{}
	}
	var claims struct {
		Issuer string  `json:"iss"`
		Expiry float64 `json:"exp"`
	}
	// Duplicate claims are refused: two parsers could pick different ones.
	if err := json.Unmarshal(raw, &claims); err != nil {
		return Unverified{}
	}
	u := Unverified{Issuer: claims.Issuer}
	if claims.Expiry > 0 && claims.Expiry <= maxExpirySeconds {
		u.Expiry = time.Unix(int64(claims.Expiry), 0)
	}
	return u
}
