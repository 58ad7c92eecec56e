package provider

import (
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// client is the gateway's public client.
type client struct{}

var _ op.Client = client{}

func (client) GetID() string                        { return Client }
func (client) RedirectURIs() []string               { return nil }
func (client) PostLogoutRedirectURIs() []string     { return nil }
func (client) ApplicationType() op.ApplicationType  { return op.ApplicationTypeNative }
func (client) AuthMethod() oidc.AuthMethod          { return oidc.AuthMethodNone }
func (client) ResponseTypes() []oidc.ResponseType   { return nil }
func (client) GrantTypes() []oidc.GrantType         { return []oidc.GrantType{oidc.GrantTypeDeviceCode} }
func (client) LoginURL(string) string               { return "" }
func (client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (client) IDTokenLifetime() time.Duration       { return TokenLife }
func (client) DevMode() bool                        { return false }
func (client) IsScopeAllowed(string) bool           { return true }
func (client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (client) ClockSkew() time.Duration             { return 0 }

func (client) RestrictAdditionalIdTokenScopes() func([]string) []string     { return same } //nolint:staticcheck // the name is the library's
func (client) RestrictAdditionalAccessTokenScopes() func([]string) []string { return same }

func same(scopes []string) []string { return scopes }
