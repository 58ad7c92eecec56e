package model

import (
	"errors"
	"fmt"
	"strings"
)

// Page is a page that the edge serves by itself, without asking authz: the
// same bytes for everyone. It is on the edge's own listener alone.
type Page struct {
	// Name names its route; it begins with an underscore, as every route that
	// is no operation's.
	Name, Path string
	Body       []byte
	// Policy is its Content-Security-Policy.
	Policy string
}

// MaxPageBytes bounds the body of a page, which Envoy holds in its
// configuration.
const MaxPageBytes = 64 << 10

func (p *Page) validate() error {
	if p == nil {
		return nil
	}
	var errs []error
	if len(p.Name) < 2 || p.Name[0] != '_' {
		errs = append(errs, fmt.Errorf("page %q: the name of an operation's route, or none", p.Name))
	}
	if err := validatePath(p.Path); err != nil {
		errs = append(errs, fmt.Errorf("page %q: %w", p.Name, err))
	}
	if HasVariables(p.Path) || strings.HasPrefix(p.Path, apiPrefix) {
		errs = append(errs, fmt.Errorf("page %q: %s is no place for a page", p.Name, p.Path))
	}
	if len(p.Body) == 0 || len(p.Body) > MaxPageBytes {
		errs = append(errs, fmt.Errorf("page %q: %d bytes, not between 1 and %d", p.Name, len(p.Body), MaxPageBytes))
	}
	if p.Policy == "" {
		errs = append(errs, fmt.Errorf("page %q: no Content-Security-Policy", p.Name))
	}
	return errors.Join(errs...)
}
