package renewal

import (
	"errors"
	"fmt"
	"net/url"

	"hangar.io/glidepath/internal/outbound"
)

// Options say where a backend has its streams renewed, to be embedded in its
// configuration.
type Options struct {
	URLs []string         `name:"authz-renew-url" env:"AUTHZ_RENEW_URL" placeholder:"URL" help:"Internal listeners of authz, http:// or https://host:port, comma-separated; the next is asked when one is away. Empty: streams are refused."`
	TLS  outbound.Options `embed:"" prefix:"authz-renew-" envprefix:"AUTHZ_RENEW_"`
}

// Validate says what is wrong with the options; it reads no file.
func (o Options) Validate() error {
	faults := []error{o.TLS.Validate()}
	secure := false
	for i, text := range o.URLs {
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			faults = append(faults, fmt.Errorf("URL %d is not http:// or https:// with host:port and nothing more", i+1))
			continue
		}
		secure = secure || u.Scheme == "https"
	}
	if o.TLS.Set() && !secure {
		faults = append(faults, errors.New("files for TLS, and no https:// URL"))
	}
	return errors.Join(faults...)
}
