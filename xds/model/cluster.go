package model

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// Cluster is a place that calls, decisions or spans go to.
type Cluster struct {
	Name string
	// Endpoints are tried in turn, least busy first; all of one kind. A
	// cluster without any refuses what is sent to it.
	Endpoints []Address
	// HTTP2 is for gRPC; backends speak HTTP/1.1, whose connections hold no
	// window of a stream that a slow viewer could fill.
	HTTP2 bool
	// TLS is nil for a cluster that is spoken to without.
	TLS            *ClusterTLS
	ConnectTimeout time.Duration
	Breaker        Breaker
}

// Breaker bounds what one Envoy has open to a cluster at once. Beyond it a
// call is answered 503 at once instead of queueing.
type Breaker struct {
	Connections, Pending, Requests, Retries uint32
}

// Address is a socket: a host (a name or an IP) with a port, or the path of a
// Unix socket.
type Address struct {
	Host string
	Port uint16
	Path string
}

// IsIP says whether the host needs no name resolution.
func (a Address) IsIP() bool {
	_, err := netip.ParseAddr(a.Host)
	return err == nil
}

// MaxSocketPath is how many bytes the path of a socket stays below: what the
// kernel has room for, with a little to spare.
const MaxSocketPath = 100

var (
	clusterName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
)

func (a Address) validate(what string) error {
	if a.Path != "" {
		if a.Host != "" || a.Port != 0 {
			return fmt.Errorf("%s: both a host and a socket path", what)
		}
		if !strings.HasPrefix(a.Path, "/") || len(a.Path) >= MaxSocketPath {
			return fmt.Errorf("%s: socket path %q is not absolute and below %d bytes", what, a.Path, MaxSocketPath)
		}
		return nil
	}
	return a.validateTCP(what)
}

func (a Address) validateTCP(what string) error {
	if a.Path != "" {
		return fmt.Errorf("%s: a Unix socket will not do", what)
	}
	var errs []error
	if !a.IsIP() && !hostName.MatchString(a.Host) {
		errs = append(errs, fmt.Errorf("%s: host %q is neither an IP nor a name", what, a.Host))
	}
	if a.Port == 0 {
		errs = append(errs, fmt.Errorf("%s: the port is missing", what))
	}
	return errors.Join(errs...)
}

func (e *Edge) validateClusters() error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range e.Clusters {
		if seen[c.Name] {
			errs = append(errs, fmt.Errorf("cluster %q: given twice", c.Name))
		}
		seen[c.Name] = true
		errs = append(errs, c.validate())
	}
	return errors.Join(errs...)
}

func (c Cluster) validate() error {
	what := fmt.Sprintf("cluster %q", c.Name)
	var errs []error
	if !clusterName.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("%s: not a plain name", what))
	}
	if c.ConnectTimeout <= 0 {
		errs = append(errs, fmt.Errorf("%s: a connect timeout of %s is not positive", what, c.ConnectTimeout))
	}
	if b := c.Breaker; b.Connections == 0 || b.Pending == 0 || b.Requests == 0 || b.Retries == 0 {
		errs = append(errs, fmt.Errorf("%s: every bound of the breaker must be positive", what))
	}
	errs = append(errs, c.TLS.validate(what))
	names := 0
	for _, a := range c.Endpoints {
		errs = append(errs, a.validate(what))
		if a.Path == "" && !a.IsIP() {
			names++
		}
	}
	if names != 0 && names != len(c.Endpoints) {
		errs = append(errs, fmt.Errorf("%s: names and fixed addresses cannot be mixed", what))
	}
	return errors.Join(errs...)
}
