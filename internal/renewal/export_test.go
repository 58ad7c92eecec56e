package renewal

import "net/http"

// NewOver gives a Keeper that asks by way of a transport of its own.
func NewOver(cfg Config, transport http.RoundTripper) (*Keeper, error) {
	urls := cfg.Options.URLs
	cfg.Options.URLs = nil
	k, err := New(cfg)
	if err == nil {
		k.client = &client{http: &http.Client{Transport: transport, CheckRedirect: noRedirect}, close: func() {}, urls: urls}
	}
	return k, err
}
