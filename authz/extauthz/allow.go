package extauthz

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/golang-jwt/jwt/v5"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/authz/ttl"
	"hangar.io/glidepath/internal/identity"
)

const (
	// readLife is how long a read's identity lives. It is given out for the
	// first half, so that whoever gets it has at least the other half.
	readLife = identity.MaxLifetime
	// writeLife is how long a write's identity lives. It is for one request,
	// which is on its way.
	writeLife = identity.MaxLifetime / 2
	// maxIdentityBytes bounds the header: whoami's identity carries the
	// caller's groups, and the hop to the backend has a limit for headers.
	maxIdentityBytes = 40 << 10
	// allowedSize bounds the answers that are kept, and maxKept each of them,
	// in bytes. A larger one is whoami's for a caller with hundreds of groups,
	// and is made for each call.
	allowedSize = 4096
	maxKept     = 8 << 10
)

// whoami is the one operation whose identity says who the caller is in full.
const whoami = "whoami"

// Signer signs identities; identity.RotatingSigner is one.
type Signer interface {
	Sign(identity.Claims) (string, error)
	// KeyID names the key that Sign uses now.
	KeyID() string
}

// issuer makes the answers to allowed calls. It is safe for concurrent use.
type issuer struct {
	signer Signer
	// tickets seals those of streams; nil gives none.
	tickets *ticket.Sealer
	// reads are the answers to reads, each with everything that is in it as
	// its key. Answers are shared and are not changed.
	reads *ttl.Cache[readKey, answer]
}

// readKey holds all that makes two identities of reads different. Tier and
// backend follow from the operation.
type readKey struct {
	// key signed it: what a removed key signed ends with its use.
	key                                                    string
	op, app, namespace, namespaceUID, username, onBehalfOf string
	// who is set for whoami, whose identity holds the caller in full.
	who authn.Digest
}

func newIssuer(s Signer, tickets *ticket.Sealer) (*issuer, error) {
	reads, err := ttl.NewCache[readKey, answer](allowedSize)
	if err != nil {
		return nil, err
	}
	return &issuer{signer: s, tickets: tickets, reads: reads}, nil
}

// allow gives the answer to an allowed call. Reads that differ in nothing share
// one for half the life of its identity; a write's is made for it alone.
func (i *issuer) allow(d *decision.Decision, r decision.Request) (answer, error) {
	now := time.Now()
	if d.Operation.Purpose != authn.ForRead {
		c := claims(d, now, writeLife)
		c.Method, c.TargetHash = r.Method, identity.HashTarget(r.Target)
		return i.answer(d, c)
	}
	if i.tickets != nil && d.Operation.Streams(r.Target) {
		return i.stream(d, r, now)
	}
	key := readKey{
		key: i.signer.KeyID(),
		op:  d.Operation.ID, app: d.App, namespace: d.Namespace.Name, namespaceUID: d.Namespace.UID,
		username: d.Caller.Username, onBehalfOf: d.OnBehalfOf,
	}
	if key.op == whoami {
		key.who = d.Caller.Whole()
	}
	if a, ok := i.reads.Get(key, now); ok {
		return a, nil
	}
	c := claims(d, now, readLife)
	if key.op == whoami {
		c.Who, c.App = who(d), ""
	}
	a, err := i.answer(d, c)
	if err != nil {
		return nil, err
	}
	if len(a) <= maxKept {
		i.reads.Put(key, a, now.Add(readLife/2))
	}
	return a, nil
}

// who is what whoami needs to know of its caller. The whole of it is signed, so
// that what reviews a caller's rights holds nothing between two processes' calls.
func who(d *decision.Decision) *identity.Who {
	w := &identity.Who{
		Groups: d.Caller.Groups, Kind: string(d.Caller.Kind), Delegate: d.Delegate, Audiences: d.Caller.Audiences,
	}
	if d.App != "" {
		w.App, w.UID, w.Extra = d.App, d.Caller.UID, d.Caller.Extra
	}
	return w
}

func claims(d *decision.Decision, now time.Time, life time.Duration) identity.Claims {
	issued, expires := identity.Times(now, life)
	return identity.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: d.Caller.Username, Audience: jwt.ClaimStrings{d.Operation.Backend},
			IssuedAt: issued, ExpiresAt: expires, ID: rand.Text(),
		},
		OnBehalfOf: d.OnBehalfOf, Op: d.Operation.ID, Tier: string(d.Operation.Tier),
		App: d.App, Namespace: d.Namespace.Name, NamespaceUID: d.Namespace.UID,
	}
}

func (i *issuer) answer(d *decision.Decision, c identity.Claims, more ...*corev3.HeaderValueOption) (answer, error) {
	signed, err := i.signer.Sign(c)
	if err != nil {
		return nil, err
	}
	if len(signed) > maxIdentityBytes {
		return nil, fmt.Errorf("an identity of %d bytes, more than the %d that a request can carry", len(signed), maxIdentityBytes)
	}
	return encode(&authv3.CheckResponse{
		Status: &statuspb.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: append([]*corev3.HeaderValueOption{overwrite(strings.ToLower(identity.Header), signed)}, more...),
		}},
		DynamicMetadata: auditFields(d, verdictAllow),
	})
}
