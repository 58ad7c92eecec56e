package xds

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/xds/model"
)

// EdgeOptions say what an edge is made of, besides the contract and the
// policy. The tags are those of kong: the same struct is flags and
// environment.
type EdgeOptions struct {
	Listen          string   `name:"listen" env:"EDGE_LISTEN" default:"0.0.0.0:8080" help:"Address that Envoy listens on for callers."`
	PeopleListen    string   `name:"people-listen" env:"PEOPLE_LISTEN" placeholder:"ADDRESS" help:"Address that Envoy listens on for the Gateway that people come through: the API under --people-hosts, and nothing else. Empty: no such route."`
	PeopleHosts     []string `name:"people-hosts" env:"PEOPLE_HOSTS" placeholder:"HOST" help:"Host names that people call the gateway by."`
	TLSCertFile     string   `name:"tls-cert-file" env:"EDGE_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate that Envoy shows to callers, PEM, with those that lead up to its authority. Envoy reads it, and again when it changes. Empty: no TLS."`
	TLSKeyFile      string   `name:"tls-key-file" env:"EDGE_TLS_KEY_FILE" placeholder:"FILE" help:"Key of that certificate, PEM, in the same folder."`
	Backends        string   `name:"backends" env:"BACKENDS" help:"Where the backends are: name=host:port[,host:port];name=..."`
	AuthzSocket     string   `name:"authz-socket" env:"AUTHZ_SOCKET" default:"/run/glidepath/authz.sock" help:"Unix socket of authz's decisions (gRPC)."`
	AuthzHTTPSocket string   `name:"authz-http-socket" env:"AUTHZ_HTTP_SOCKET" default:"/run/glidepath/authz-http.sock" help:"Unix socket of the operations that authz answers (HTTP)."`
	Board           bool     `name:"board" env:"EDGE_BOARD" default:"true" negatable:"" help:"Serves the page /board, which shows live runs to whoever pastes a token into it. It holds no data, so nobody is asked for a token to get it."`
	ServePlanned    string   `name:"serve-planned" env:"SERVE_PLANNED" help:"Address that answers the operations whose backend does not exist yet. For tests only."`

	telemetry.TraceConfig // of Envoy: xds answers no call, so it has no spans of its own
}

// Validate reports every fault of o together.
func (o EdgeOptions) Validate() error {
	_, err := o.parse()
	return err
}

// parsed is what the options mean.
type parsed struct {
	listen           model.Address
	people           *model.PeopleRoute
	tls              *model.ListenerTLS
	backends         map[string][]model.Address
	authz, authzHTTP model.Address
	planned          []model.Address
	collector        []model.Address
	collectorTLS     *model.ClusterTLS
	tracesURL        string
}

func (o EdgeOptions) parse() (parsed, error) {
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var p parsed
	var err error
	p.listen, err = parseAddress("--listen", o.Listen)
	keep(err)
	p.people, err = o.peopleRoute()
	keep(err)
	p.tls, err = o.listenerTLS()
	keep(err)
	p.backends, err = parseBackends(o.Backends)
	keep(err)
	p.authz, err = parseSocket("--authz-socket", o.AuthzSocket)
	keep(err)
	p.authzHTTP, err = parseSocket("--authz-http-socket", o.AuthzHTTPSocket)
	keep(err)
	if o.ServePlanned != "" {
		a, err := parseAddress("--serve-planned", o.ServePlanned)
		keep(err)
		p.planned = []model.Address{a}
	}
	keep(o.TraceConfig.Validate())
	if o.OTLPEndpoint != "" {
		var a model.Address
		var u *url.URL
		a, u, err = parseCollector(o.OTLPEndpoint)
		keep(err)
		if err == nil {
			p.collector, p.tracesURL = []model.Address{a}, strings.TrimSuffix(u.String(), "/")+"/v1/traces"
			p.collectorTLS, err = o.collectorTLS(u)
			keep(err)
		}
	}
	return p, errors.Join(errs...)
}

func parseAddress(flag, s string) (model.Address, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return model.Address{}, fmt.Errorf("%s: %q is not host:port", flag, s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return model.Address{}, fmt.Errorf("%s: %q is not host:port", flag, s)
	}
	return model.Address{Host: host, Port: uint16(n)}, nil
}

func parseSocket(flag, path string) (model.Address, error) {
	if !strings.HasPrefix(path, "/") {
		return model.Address{}, fmt.Errorf("%s: %q is not an absolute path", flag, path)
	}
	if len(path) >= model.MaxSocketPath {
		return model.Address{}, fmt.Errorf("%s: a path of %d bytes, and a socket's has fewer than %d", flag, len(path), model.MaxSocketPath)
	}
	return model.Address{Path: path}, nil
}

func parseBackends(s string) (map[string][]model.Address, error) {
	out := map[string][]model.Address{}
	var errs []error
	for part := range strings.SplitSeq(s, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, list, ok := strings.Cut(part, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--backends: %q is not name=host:port", part))
			continue
		}
		if _, twice := out[name]; twice {
			errs = append(errs, fmt.Errorf("--backends: %s is given twice", name))
		}
		for one := range strings.SplitSeq(list, ",") {
			a, err := parseAddress("--backends: "+name, strings.TrimSpace(one))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out[name] = append(out[name], a)
		}
	}
	return out, errors.Join(errs...)
}

// parseCollector gives the collector's address and its URL.
func parseCollector(s string) (model.Address, *url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		// The URL may hold a credential, so it is not repeated.
		return model.Address{}, nil, errors.New("--otlp-endpoint: not a plain http://host:port or https://host:port")
	}
	port := u.Port()
	if port == "" {
		port = "4318"
	}
	a, err := parseAddress("--otlp-endpoint", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return model.Address{}, nil, err
	}
	return a, u, nil
}
