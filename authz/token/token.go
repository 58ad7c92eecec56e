// Package token owns how a caller's credential is read from a request: which
// header carries it, what a bearer token looks like, and what a JWT says of
// itself before anyone has verified it. It never decides whether a token is
// good.
package token

import (
	"log/slog"
	"strings"

	"hangar.io/glidepath/internal/problem"
)

// The request headers that may carry a token, in lower case as Envoy hands
// them over. ProxyHeader is for calls through the API server's service proxy,
// which uses up Authorization itself.
const (
	ProxyHeader  = "x-glidepath-authorization"
	DirectHeader = "authorization"
)

// MaxBytes bounds a token. The largest that a cluster issues are a few
// kilobytes.
const MaxBytes = 16 << 10

// Token is a bearer token. It prints as a placeholder wherever it might be
// logged by mistake; Secret gives the token itself.
type Token struct{ secret string }

// Secret gives the token as sent. It belongs into a review or a digest and
// nowhere else.
func (t Token) Secret() string { return t.secret }

const placeholder = "[token]"

// String keeps the token out of formatted text.
func (Token) String() string { return placeholder }

// GoString keeps the token out of %#v.
func (Token) GoString() string { return placeholder }

// LogValue keeps the token out of logs.
func (Token) LogValue() slog.Value { return slog.StringValue(placeholder) }

// Headers gives a request's header by its lower-case name: the value, and how
// many times it was sent.
type Headers interface {
	Get(name string) (value string, times int)
}

// hintOneToken is for who sent several.
const hintOneToken = "send one header with one token"

// FromHeaders finds the caller's token. A request that has ProxyHeader is read
// from it alone, whatever it holds: falling back to Authorization would let the
// credential of a proxy stand in for the caller's own.
//
// The error is GP-AUTH-001 when no bearer token was sent and GP-AUTH-002 when
// what was sent cannot be one token.
func FromHeaders(h Headers) (Token, error) {
	for _, name := range [...]string{ProxyHeader, DirectHeader} {
		if value, times := h.Get(name); times > 0 {
			return parse(value, times)
		}
	}
	return Token{}, problem.New(problem.AuthNoToken, "")
}

func parse(header string, times int) (Token, error) {
	scheme, value, _ := strings.Cut(strings.Trim(header, " "), " ")
	value = strings.TrimLeft(value, " ")
	switch {
	case times > 1:
		return Token{}, problem.New(problem.AuthBadToken, "more than one token was sent").WithHint(hintOneToken)
	case !strings.EqualFold(scheme, "Bearer"):
		return Token{}, problem.New(problem.AuthNoToken, "")
	case value == "":
		return Token{}, problem.New(problem.AuthNoToken, "the bearer token is empty")
	case len(value) > MaxBytes:
		return Token{}, problem.New(problem.AuthBadToken, "the token is too long")
	case strings.Contains(value, ","):
		// Envoy joins a repeated header with commas, and no token has one.
		return Token{}, problem.New(problem.AuthBadToken, "more than one token was sent").WithHint(hintOneToken)
	case !isB64Token(value):
		return Token{}, problem.New(problem.AuthBadToken, "the token has characters that no token has")
	}
	return Token{secret: value}, nil
}

// isB64Token says whether s is a b64token (RFC 6750, section 2.1).
func isB64Token(s string) bool {
	body := strings.TrimRight(s, "=")
	for i := range len(body) {
		if !b64tokenByte[body[i]] {
			return false
		}
	}
	return body != ""
}

// b64tokenByte marks the bytes of a b64token before its padding.
var b64tokenByte = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		set[c] = true
	}
	return set
}()
