package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// PeopleRoute is the way in for people: a listener of its own that the
// cluster's Gateway leads to. What it serves is held to here, whatever the
// Gateway's own routes say: the API and nothing else, under these hosts alone.
type PeopleRoute struct {
	// Listen is where the Gateway connects; a TCP address that is not the
	// edge's own.
	Listen Address
	// Hosts are the names that people call the gateway by, in lower case and
	// without a port.
	Hosts []string
}

// apiPrefix begins the path of everything that people may call.
const apiPrefix = "/v1/"

// Serves says whether an operation is on the route for people.
func (*PeopleRoute) Serves(r Route) bool { return strings.HasPrefix(r.Path, apiPrefix) }

var peopleHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

func (p *PeopleRoute) validate(edge Address) error {
	if p == nil {
		return nil
	}
	errs := []error{p.Listen.validateTCP("people.listen")}
	if p.Listen == edge {
		errs = append(errs, errors.New("people.listen: the address of the edge's own listener"))
	}
	if len(p.Hosts) == 0 {
		errs = append(errs, errors.New("people.hosts: missing: a route without a host would serve none"))
	}
	for i, h := range p.Hosts {
		if !peopleHost.MatchString(h) {
			errs = append(errs, fmt.Errorf("people.hosts: %q is not a host's name in lower case, without port and wildcard", h))
		}
		if slices.Contains(p.Hosts[:i], h) {
			errs = append(errs, fmt.Errorf("people.hosts: %s is given twice", h))
		}
	}
	return errors.Join(errs...)
}
