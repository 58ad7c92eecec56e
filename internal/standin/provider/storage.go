package provider

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// errUnused is what everything answers that the device flow has no use for.
var errUnused = errors.New("this provider has the device flow alone")

// storage is what the library keeps, and asks, of a provider.
type storage struct{ p *Provider }

var (
	_ op.Storage                    = storage{}
	_ op.DeviceAuthorizationStorage = storage{}
)

func (s storage) StoreDeviceAuthorization(_ context.Context, client, code, userCode string, expires time.Time, scopes []string) error {
	return s.p.storeDevice(&device{code: code, userCode: userCode, state: op.DeviceAuthorizationState{ClientID: client, Scopes: scopes, Expires: expires}})
}

func (s storage) GetDeviceAuthorizatonState(_ context.Context, client, code string) (*op.DeviceAuthorizationState, error) {
	return s.p.poll(client, code)
}

func (s storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != Client {
		return nil, errors.New("no such client")
	}
	return client{}, nil
}

// SetUserinfoFromScopes fills an ID token as Dex does: the login with the scope
// profile alone, the account with federated:id alone.
func (s storage) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, subject, _ string, scopes []string) error {
	for _, person := range s.p.people {
		if person.subject() != subject {
			continue
		}
		info.Subject = subject
		if slices.Contains(scopes, "profile") {
			info.Name, info.PreferredUsername = person.Name, person.Login
		}
		if slices.Contains(scopes, "federated:id") {
			info.AppendClaims("federated_claims", map[string]string{"connector_id": "github", "user_id": person.UserID})
		}
		return nil
	}
	return errors.New("no such person")
}

// CreateAccessToken names a token that opens nothing.
func (storage) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return rand.Text(), time.Now().Add(TokenLife), nil
}

func (s storage) SigningKey(context.Context) (op.SigningKey, error) { return s.p.current(), nil }

func (storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

func (s storage) KeySet(context.Context) ([]op.Key, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	var keys []op.Key
	for _, k := range s.p.keys {
		keys = append(keys, publicKey{k})
	}
	return keys, nil
}

func (storage) Health(context.Context) error { return nil }

// signingKey is a key of the provider, publicKey what it publishes of it.
type (
	signingKey struct {
		id      string
		private *rsa.PrivateKey
	}
	publicKey struct{ *signingKey }
)

func (*signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                  { return k.private }
func (k *signingKey) ID() string                                { return k.id }

func (publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                         { return k.private.Public() }
