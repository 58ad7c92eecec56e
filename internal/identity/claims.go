// Package identity owns what a backend knows of a call: a short-lived token
// that authz signs once a call is allowed and that each backend verifies. It
// says who calls, for whom, and for exactly which operation and app; a backend
// takes these from nowhere else.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Header carries the token from the edge to a backend. The edge strips it from
// what callers send.
const Header = "X-Glidepath-Identity"

// Issuer is the iss of every identity.
const Issuer = "glidepath-authz"

// MaxLifetime is how long an identity may live. A verifier refuses a longer
// one, whoever signed it.
const MaxLifetime = 60 * time.Second

// Leeway is how far the clocks of authz and of a backend may differ.
const Leeway = 5 * time.Second

// Claims are the facts of one allowed call. Registered claims: iss is Issuer,
// aud the one backend, sub the caller's user name, and iat, exp, jti.
type Claims struct {
	jwt.RegisteredClaims
	// OnBehalfOf is the person a delegate names; empty for everyone else.
	OnBehalfOf string `json:"obo,omitempty"`
	// Op is the operationId that was decided.
	Op string `json:"op"`
	// Tier is the operation's tier.
	Tier string `json:"tier"`
	// App, Namespace and NamespaceUID are set when the call is about one app:
	// its name, and the namespace that authz derived from it.
	App          string `json:"app,omitempty"`
	Namespace    string `json:"ns,omitempty"`
	NamespaceUID string `json:"nsUid,omitempty"`
	// Method and TargetHash (see HashTarget) bind a write to one request.
	Method     string `json:"htm,omitempty"`
	TargetHash string `json:"hth,omitempty"`
	// TokenExpiry is there for streams alone: when the caller's token ends, and
	// the stream with it.
	TokenExpiry *jwt.NumericDate `json:"tokExp,omitempty"`
	// Who is there for whoami alone, which answers it.
	Who *Who `json:"who,omitempty"`
}

// Who is what a token review said of the caller beyond the user name.
type Who struct {
	Groups    []string `json:"groups"`
	Kind      string   `json:"kind"`
	Delegate  bool     `json:"delegate,omitempty"`
	Audiences []string `json:"audiences"`
	// App is the app that the caller asks about. It is not Claims.App, which
	// says that the caller may act on the app in its namespace.
	App string `json:"app,omitempty"`
	// UID and Extra are set with App: reviews of the caller's rights need them.
	UID   string              `json:"uid,omitempty"`
	Extra map[string][]string `json:"extra,omitempty"`
}

// HashTarget gives the form in which a write's path and query stand in its
// identity: the hex SHA-256 of the request target as the backend receives it.
func HashTarget(target string) string {
	sum := sha256.Sum256([]byte(target))
	return hex.EncodeToString(sum[:])
}

// write says whether the identity is that of a write, which is for one call.
func (c *Claims) write() bool { return c.Method != "" || c.Tier != "T0" }

type contextKey struct{}

// NewContext returns ctx with a verified identity.
func NewContext(ctx context.Context, c *Claims) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext gives the identity that Require verified. The claims are shared
// by every call that carries the same token: read them only.
func FromContext(ctx context.Context) (*Claims, bool) {
	c, ok := ctx.Value(contextKey{}).(*Claims)
	return c, ok
}
