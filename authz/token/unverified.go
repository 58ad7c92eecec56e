package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json/jsontext"
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

// maxIssuers bounds how many issuers are found in one token.
const maxIssuers = 8

// Issuers gives every iss claim that any reader of the token could find: it
// reads on where a strict reader would stop. It is for keeping a token from
// those whom it is none of, and says nothing about who made it.
func (t Token) Issuers() []string {
	raw, ok := t.payload()
	if !ok {
		return nil
	}
	var found []string
	d := jsontext.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil
	}
	for len(found) < maxIssuers {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return found // the object's end, or of what can be read
		}
		if name.String() != "iss" || d.PeekKind() != '"' {
			if d.SkipValue() != nil {
				return found
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil {
			return found
		}
		found = append(found, value.String())
	}
	return found
}

// payload decodes the second of a JWT's three parts.
func (t Token) payload() ([]byte, bool) {
	_, rest, ok := strings.Cut(t.secret, ".")
	if !ok {
		return nil, false
	}
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(payload, "="))
	return raw, err == nil
}

// Unverified reads the claims of a JWT without looking at its signature. A
// token that is no JWT gives the zero value.
func (t Token) Unverified() Unverified {
	raw, ok := t.payload()
	if !ok {
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
