package xds

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"hangar.io/glidepath/internal/certs"
	"hangar.io/glidepath/xds/model"
	"hangar.io/glidepath/xds/translate"
)

// listenerTLS is nil when callers come without TLS.
func (o EdgeOptions) listenerTLS() (*model.ListenerTLS, error) {
	switch {
	case o.TLSCertFile == "" && o.TLSKeyFile == "":
		return nil, nil
	case o.TLSCertFile == "" || o.TLSKeyFile == "":
		return nil, errors.New("--tls-cert-file and --tls-key-file: one without the other")
	}
	return &model.ListenerTLS{CertFile: o.TLSCertFile, KeyFile: o.TLSKeyFile}, nil
}

// CheckFiles says what is wrong with the certificates that Envoy is told to
// read, as this process finds them: one that is missing, has expired or has
// another key. Nothing of them is kept.
func (o EdgeOptions) CheckFiles() error {
	var errs []error
	if o.TLSCertFile != "" {
		if _, err := certs.ReadPair(o.TLSCertFile, o.TLSKeyFile, time.Now()); err != nil {
			errs = append(errs, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err))
		}
	}
	if o.OTLPCAFile != "" {
		if _, err := certs.ReadPool(o.OTLPCAFile); err != nil {
			errs = append(errs, fmt.Errorf("--otlp-ca-file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// usable says whether a configuration that was stored may be served to begin
// with: one from before TLS was switched on may not, since nothing must be
// served without TLS that was asked for with it.
func (o EdgeOptions) usable(res *translate.Resources) error {
	if o.TLSCertFile == "" {
		return nil
	}
	for _, l := range res.Listeners {
		if l.GetAddress().GetSocketAddress() == nil {
			continue // inside Envoy, where only its own routes lead
		}
		for _, chain := range l.FilterChains {
			if chain.TransportSocket == nil {
				return fmt.Errorf("the listener %s in it has no TLS, and TLS is switched on", l.Name)
			}
		}
	}
	return nil
}

// collectorTLS is nil for a collector that is reached without TLS.
func (o EdgeOptions) collectorTLS(endpoint *url.URL) (*model.ClusterTLS, error) {
	switch {
	case endpoint.Scheme == "https" && o.OTLPCAFile == "":
		return nil, errors.New("--otlp-ca-file: missing: Envoy takes no https collector without authorities")
	case endpoint.Scheme == "https":
		return &model.ClusterTLS{CAFile: o.OTLPCAFile, ServerName: endpoint.Hostname()}, nil
	}
	return nil, nil
}
