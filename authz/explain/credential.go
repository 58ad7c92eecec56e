package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/token"
)

// Credential is what the explained call is made with: a token, a caller whom
// the operator names, or nothing. It keeps a token out of everything printed.
type Credential struct {
	// Source says in words where the token comes from; empty without one.
	Source string
	// Proxied says that it comes in the header of the service proxy.
	Proxied bool
	// As is the caller when there is no token.
	As *authn.Caller

	secret string
}

// NewToken is a credential that is this token. Spaces and line breaks around
// it, which files end with, do not count.
func NewToken(source, secret string) Credential {
	return Credential{Source: source, secret: strings.TrimSpace(secret)}
}

// String keeps the token out of formatted text.
func (c Credential) String() string { return c.Source }

// GoString keeps the token out of %#v.
func (c Credential) GoString() string { return c.Source }

// NewUser is a credential that is no token: the call is decided as if its token
// were this user's. Nobody checks that there is one. A ServiceAccount or
// a person named without groups gets those that its name implies.
func NewUser(username, uid string, groups []string) (Credential, error) {
	if implied, ok := authn.ImpliedGroups(username); ok && len(groups) == 0 {
		groups = implied
	}
	f := authn.Facts{Username: username, UID: uid, Groups: groups}
	c, err := authn.NewClusterCaller(f)
	if login, ok := strings.CutPrefix(username, authn.PersonPrefix); ok {
		c, err = authn.NewPerson(login, f)
	}
	if err != nil {
		return Credential{}, fmt.Errorf("no caller can be %q: %w", username, err)
	}
	return Credential{As: c}, nil
}

// accountTokenLife is the shortest that an API server gives a token for.
const accountTokenLife = 10 * time.Minute

// NewAccountToken asks the API server for a new token of a ServiceAccount, given
// as namespace/name. It needs to create serviceaccounts/token there.
func NewAccountToken(ctx context.Context, cluster *rest.Config, account string, audiences []string) (Credential, error) {
	namespace, name, ok := strings.Cut(account, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Credential{}, fmt.Errorf("%q is not namespace/name", account)
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return Credential{}, fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	seconds := int64(accountTokenLife / time.Second)
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return Credential{}, fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	return NewToken("a new one of ServiceAccount "+account, answer.Status.Token), nil
}

// token says what can be said of the token without anybody having verified it.
func (c Credential) token() *Token {
	switch {
	case c.As != nil:
		return &Token{Source: "none: the caller is assumed", VerifiedBy: "nobody"}
	case c.Source == "":
		return nil
	}
	out := &Token{Source: c.Source, Header: token.DirectHeader, VerifiedBy: verifiedByCluster}
	if c.Proxied {
		out.Header = token.ProxyHeader
	}
	parsed, err := token.FromHeaders(c.headers())
	if err != nil {
		return out // the decision says so too, and why
	}
	claims := parsed.Unverified()
	out.Issuer = claims.Issuer
	if !claims.Expiry.IsZero() {
		out.Expires = claims.Expiry.UTC().Format(time.RFC3339)
	}
	return out
}

// sent is a request's headers.
type sent map[string]string

// Get gives a header by its lower-case name.
func (s sent) Get(name string) (value string, times int) {
	value, ok := s[name]
	if !ok {
		return "", 0
	}
	return value, 1
}

func (c Credential) headers() sent {
	name := token.DirectHeader
	if c.Proxied {
		name = token.ProxyHeader
	}
	switch {
	case c.As != nil:
		return sent{name: "Bearer assumed"}
	case c.Source == "":
		return sent{}
	}
	return sent{name: "Bearer " + c.secret}
}

func (q Question) headers() sent {
	h := q.Credential.headers()
	if q.OnBehalfOf != "" {
		h[decision.OnBehalfOfHeader] = q.OnBehalfOf
	}
	return h
}

// assumed authenticates everybody as one caller.
type assumed struct{ caller *authn.Caller }

// Authenticate gives the caller.
func (a assumed) Authenticate(context.Context, token.Token, authn.Purpose) (*authn.Caller, error) {
	return a.caller, nil
}
