package provider

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// What follows belongs to flows that this provider does not have.

func (storage) CreateAuthRequest(context.Context, *oidc.AuthRequest, string) (op.AuthRequest, error) {
	return nil, errUnused
}

func (storage) AuthRequestByID(context.Context, string) (op.AuthRequest, error) {
	return nil, errUnused
}

func (storage) AuthRequestByCode(context.Context, string) (op.AuthRequest, error) {
	return nil, errUnused
}

func (storage) SaveAuthCode(context.Context, string, string) error { return errUnused }

func (storage) DeleteAuthRequest(context.Context, string) error { return errUnused }

func (storage) CreateAccessAndRefreshTokens(context.Context, op.TokenRequest, string) (id, refresh string, expires time.Time, err error) {
	return "", "", time.Time{}, errUnused
}

func (storage) TokenRequestByRefreshToken(context.Context, string) (op.RefreshTokenRequest, error) {
	return nil, errUnused
}

func (storage) TerminateSession(context.Context, string, string) error { return errUnused }

func (storage) RevokeToken(context.Context, string, string, string) *oidc.Error {
	return oidc.ErrInvalidRequest()
}

func (storage) GetRefreshTokenInfo(context.Context, string, string) (user, token string, err error) {
	return "", "", op.ErrInvalidRefreshToken
}

func (storage) AuthorizeClientIDSecret(context.Context, string, string) error { return errUnused }

func (storage) SetUserinfoFromToken(context.Context, *oidc.UserInfo, string, string, string) error {
	return errUnused
}

func (storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errUnused
}

func (storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}

func (storage) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errUnused
}

func (storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, errUnused
}
