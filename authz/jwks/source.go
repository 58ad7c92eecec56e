package jwks

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxBody bounds what is read of an answer, in bytes: many times the keys of
// any issuer.
const maxBody = 256 << 10

// Source reads what an issuer says of itself; for its keys the bytes are a JWK
// Set.
type Source interface {
	Fetch(ctx context.Context) ([]byte, error)
}

// At gives the source of an issuer whose keys are at a fixed URL. The transport
// decides whom it trusts; redirects are not followed.
func At(transport http.RoundTripper, keys string) Source {
	return fixed{client: newClient(transport), url: keys}
}

// Discover gives the source of an issuer that says itself where its keys are
// (OpenID Connect Discovery 1.0). It is asked anew with each reading.
func Discover(transport http.RoundTripper, issuer string) Source {
	return discovered{client: newClient(transport), issuer: issuer}
}

type fixed struct {
	client *http.Client
	url    string
}

func (f fixed) Fetch(ctx context.Context) ([]byte, error) {
	return get(ctx, f.client, f.url)
}

type discovered struct {
	client *http.Client
	issuer string
}

func (d discovered) Fetch(ctx context.Context) ([]byte, error) {
	raw, err := get(ctx, d.client, strings.TrimSuffix(d.issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, errors.New("discovering the keys: not the JSON of a provider's configuration")
	}
	if doc.Issuer != d.issuer {
		// It may be a mistake in the settings, or somebody else's answer.
		return nil, fmt.Errorf("discovering the keys: the provider calls itself %.200q", doc.Issuer)
	}
	if err := d.accept(doc.Keys); err != nil {
		return nil, fmt.Errorf("discovering the keys: jwks_uri: %w", err)
	}
	return get(ctx, d.client, doc.Keys)
}

// accept refuses an address that would give away what TLS protected so far.
func (d discovered) accept(keys string) error {
	if err := CheckURL(keys); err != nil {
		return err
	}
	if strings.HasPrefix(d.issuer, "https:") && !strings.HasPrefix(keys, "https:") {
		return errors.New("the issuer is reached by https and its keys are not")
	}
	return nil
}

// CheckURL says what is wrong with the address of an issuer or of its keys.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("not a URL") // the parser's error would repeat a password
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("not an http or https URL")
	case u.Hostname() == "":
		return errors.New("a URL without a host")
	case u.User != nil:
		return errors.New("a URL with a password in it")
	case u.Fragment != "":
		return errors.New("a URL with a fragment")
	}
	return nil
}

// newClient follows no redirect: keys come from where they were looked for, or
// from nowhere.
func newClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer: %w", err)
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the issuer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking the issuer: %s answered %d", address, resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("asking the issuer: reading what %s answered: %w", address, err)
	}
	if len(raw) > maxBody {
		return nil, fmt.Errorf("asking the issuer: %s answered more than %d bytes", address, maxBody)
	}
	return raw, nil
}
