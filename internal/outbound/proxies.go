package outbound

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxies says which requests go through a proxy. The zero value says none.
type Proxies struct {
	find func(*url.URL) (*url.URL, error)
}

// ProxiesFromEnvironment reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or the same
// in lower case. They are no flags, as the URL of a proxy may hold a password
// and everybody on a machine can read arguments. What is wrong with one is
// said without its value.
//
// A host is reached without a proxy when NO_PROXY names it, its domain, its
// network (10.0.0.0/8) or "*", and always when it is localhost or a loopback
// address.
func ProxiesFromEnvironment() (Proxies, error) {
	env := httpproxy.FromEnvironment()
	return NewProxies(env.HTTPSProxy, env.HTTPProxy, env.NoProxy)
}

// NewProxies is ProxiesFromEnvironment with the values given.
func NewProxies(https, plain, except string) (Proxies, error) {
	cfg := httpproxy.Config{NoProxy: except}
	var errs []error
	for _, one := range []struct {
		name, value string
		into        *string
	}{{"HTTPS_PROXY", https, &cfg.HTTPSProxy}, {"HTTP_PROXY", plain, &cfg.HTTPProxy}} {
		if one.value == "" {
			continue
		}
		u, err := parseProxy(one.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.name, err))
			continue
		}
		*one.into = u.String()
	}
	if err := errors.Join(errs...); err != nil {
		return Proxies{}, err
	}
	return Proxies{find: cfg.ProxyFunc()}, nil
}

// parseProxy takes what the standard library takes, without its errors: they
// quote the value.
func parseProxy(value string) (*url.URL, error) {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("it is not the URL of a proxy, http://host:port")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("a proxy is reached by http or https")
	}
	return u, nil
}

// For gives the proxy of a request, or nil for none; it is what
// [http.Transport.Proxy] and the API server's client take.
func (p Proxies) For(r *http.Request) (*url.URL, error) {
	if p.find == nil {
		return nil, nil
	}
	return p.find(r.URL)
}
