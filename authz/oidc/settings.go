package oidc

import (
	"errors"
	"fmt"
	"strings"

	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/internal/outbound"
)

// Settings say how people sign in. The zero value says that they do not: every
// token is then the cluster's.
type Settings struct {
	Issuer       string   `name:"oidc-issuer" env:"OIDC_ISSUER" placeholder:"URL" help:"Issuer of people's ID tokens, exactly as the tokens name it. Empty means that people cannot sign in."`
	JWKSURL      string   `name:"oidc-jwks-url" env:"OIDC_JWKS_URL" placeholder:"URL" help:"Where the issuer's keys are. Empty means that the issuer is asked."`
	Audience     string   `name:"oidc-audience" env:"OIDC_AUDIENCE" placeholder:"CLIENT" help:"Client id that an ID token must be made for."`
	AllowedUsers []string `name:"oidc-allowed-users" env:"OIDC_ALLOWED_USERS" placeholder:"LOGIN" help:"Logins that may sign in, each alone or with the account that it must be of: login, login:id=<user id at the provider behind Dex>, login:sub=<subject>."`

	Server outbound.Options `embed:"" prefix:"oidc-" envprefix:"OIDC_"`
}

// Enabled says whether people sign in.
func (s Settings) Enabled() bool { return s.Issuer != "" }

// Validate says everything that is wrong, with the prefix of the flags.
func (s Settings) Validate() error {
	if !s.Enabled() {
		if s.JWKSURL != "" || s.Audience != "" || len(s.AllowedUsers) > 0 || s.Server.Set() {
			return errors.New("--oidc-issuer: missing, while other settings of --oidc- are given")
		}
		return nil
	}
	var faults []error
	fault := func(flag string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("--oidc-%s: %w", flag, err))
		}
	}
	fault("issuer", checkIssuer(s.Issuer))
	if s.JWKSURL != "" {
		fault("jwks-url", jwks.CheckURL(s.JWKSURL))
	}
	if s.Audience == "" || strings.TrimSpace(s.Audience) != s.Audience {
		fault("audience", errors.New("missing, or with spaces around it: any client's token would be taken without it"))
	}
	if _, err := NewAllowed(s.AllowedUsers); err != nil {
		fault("allowed-users", errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	if err := s.Server.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("--oidc-%w", err))
	} else if s.Server.Set() && !strings.HasPrefix(s.keysAt(), "https:") {
		fault("ca-file", errors.New("certificates are given, and the keys are not read over https"))
	}
	return errors.Join(faults...)
}

// checkIssuer holds an issuer to OpenID Connect Core 1.0, section 2, but for
// http, which a provider inside a cluster may be reached by.
func checkIssuer(s string) error {
	if err := jwks.CheckURL(s); err != nil {
		return err
	}
	if strings.ContainsAny(s, "?#") {
		return errors.New("a URL with a query")
	}
	return nil
}

// keysAt is where the way to the keys begins.
func (s Settings) keysAt() string {
	if s.JWKSURL != "" {
		return s.JWKSURL
	}
	return s.Issuer
}
