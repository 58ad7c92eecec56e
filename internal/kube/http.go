package kube

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// HTTP gives a client of the API server of cfg, and the server's address, for
// what speaks plain HTTP to it: client-go's REST client would sleep and try
// again on 429 for longer than a call may wait, and decodes what is only passed
// on. The client follows no redirect, which would take the credential elsewhere.
func HTTP(cfg *rest.Config) (*http.Client, *url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("addressing the API server: %w", err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, base, nil
}
