// Package signin owns how a person gets an ID token from a terminal: the device
// flow (RFC 8628) with an OpenID Connect provider, and the file that the token is
// kept in.
package signin

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"
)

const (
	// maxBody bounds what is read of a provider's configuration, in bytes.
	maxBody = 256 << 10
	// askTime bounds asking for a code.
	askTime = 30 * time.Second
	// codeTime is how long a code is waited for whose provider does not say.
	codeTime = 5 * time.Minute
)

// scopes ask for the claims that the gateway reads: the login, and the account
// behind it.
func scopes() []string { return []string{"openid", "profile", "federated:id"} }

// Config says with whom to sign in.
type Config struct {
	// Issuer is the provider, exactly as it names itself; Client the gateway's
	// client there.
	Issuer, Client string
	Transport      http.RoundTripper
	// Show tells the person what to do; it is called once.
	Show func(Prompt)
}

// Prompt is what the person does in a browser.
type Prompt struct {
	// Address is where to go; Complete has the code in it and may be empty.
	Address, Complete string
	Code              string
	// Expires is when the code is of no use any more.
	Expires time.Time
}

// Errors that end a sign-in.
var (
	ErrDenied  = errors.New("the sign-in was denied")
	ErrExpired = errors.New("the code expired before it was used: start again")
)

// Login signs a person in and returns the ID token. It polls as slowly as the
// provider says and returns when the person has answered, when the code has
// expired, or when ctx ends.
func Login(ctx context.Context, c Config) (Token, error) {
	client := &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	flow, device, err := begin(ctx, client, c)
	if err != nil {
		return Token{}, err
	}
	prompt := Prompt{Address: device.VerificationURI, Complete: device.VerificationURIComplete, Code: device.UserCode, Expires: device.Expiry}
	if err := prompt.check(); err != nil {
		return Token{}, fmt.Errorf("asking for a code: %w", err)
	}
	c.Show(prompt)
	answer, err := flow.DeviceAccessToken(ctx, device)
	switch {
	case ctx.Err() != nil:
		return Token{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded): // the code's own
		return Token{}, ErrExpired
	case err != nil:
		return Token{}, fmt.Errorf("waiting for the sign-in: %w", plain(err))
	}
	id, _ := answer.Extra("id_token").(string)
	t, err := parse(id)
	if err != nil {
		return Token{}, fmt.Errorf("the provider's answer: %w", err)
	}
	return t, nil
}

// begin asks the provider for a code.
func begin(ctx context.Context, client *http.Client, c Config) (*oauth2.Config, *oauth2.DeviceAuthResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	endpoints, err := discover(ctx, client, c.Issuer)
	if err != nil {
		return nil, nil, err
	}
	flow := &oauth2.Config{ClientID: c.Client, Scopes: scopes(), Endpoint: endpoints}
	device, err := flow.DeviceAuth(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("asking for a code: %w", plain(err))
	}
	if device.Expiry.IsZero() { // required by the RFC, and what ends the polling
		device.Expiry = time.Now().Add(codeTime)
	}
	return flow, device, nil
}

// plain makes of the library's error one without what the provider sent.
func plain(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	switch {
	case answer.ErrorCode == "access_denied":
		return ErrDenied
	case answer.ErrorCode == "expired_token":
		return ErrExpired
	case printable(answer.ErrorCode) && answer.ErrorCode != "":
		return fmt.Errorf("the provider answered %.100s", answer.ErrorCode)
	}
	return fmt.Errorf("the provider answered %s", answer.Response.Status)
}

// check refuses what must not be shown in a terminal or be opened.
func (p Prompt) check() error {
	if p.Code == "" || !printable(p.Code) || !printable(p.Address) || !printable(p.Complete) {
		return errors.New("the provider sent no code, or one that cannot be shown")
	}
	for _, address := range []string{p.Address, p.Complete} {
		u, err := url.Parse(address)
		if address == "" && p.Address != "" {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New("the provider sent no address to go to")
		}
	}
	return nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) })
}

// discover finds the provider's endpoints (OpenID Connect Discovery 1.0).
func discover(ctx context.Context, client *http.Client, issuer string) (oauth2.Endpoint, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return oauth2.Endpoint{}, fmt.Errorf("finding the provider: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return oauth2.Endpoint{}, fmt.Errorf("finding the provider: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return oauth2.Endpoint{}, fmt.Errorf("finding the provider: it answered %s", resp.Status)
	}
	var doc struct {
		Issuer string `json:"issuer"`
		Token  string `json:"token_endpoint"`
		Device string `json:"device_authorization_endpoint"`
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return oauth2.Endpoint{}, fmt.Errorf("finding the provider: %w", err)
	}
	switch err := json.Unmarshal(raw, &doc); {
	case err != nil:
		return oauth2.Endpoint{}, errors.New("finding the provider: what it answered is no configuration of one")
	case doc.Issuer != issuer:
		return oauth2.Endpoint{}, fmt.Errorf("finding the provider: it calls itself %.200q", doc.Issuer)
	case doc.Device == "" || doc.Token == "":
		return oauth2.Endpoint{}, errors.New("finding the provider: it has no device flow")
	}
	// A public client has no secret, so it names itself in the form.
	return oauth2.Endpoint{DeviceAuthURL: doc.Device, TokenURL: doc.Token, AuthStyle: oauth2.AuthStyleInParams}, nil
}
