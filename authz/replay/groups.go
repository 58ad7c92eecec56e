package replay

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hangar.io/glidepath/authz/authn"
)

// Groups says which groups callers are in, by user name. An audit line does not
// say it; of a ServiceAccount and of a person it follows from the name.
type Groups map[string][]string

// ReadGroups reads YAML: a user name and the list of its groups, a line each.
func ReadGroups(raw []byte) (Groups, error) {
	g := Groups{}
	if err := yaml.UnmarshalStrict(raw, &g); err != nil {
		return nil, fmt.Errorf("reading groups: %w", err)
	}
	return g, nil
}

// caller gives the caller that a line names, or why it is not known well enough.
func (g Groups) caller(username string) (*authn.Caller, string) {
	groups, given := g[username]
	implied, known := authn.ImpliedGroups(username)
	login, person := strings.CutPrefix(username, authn.PersonPrefix)
	switch {
	case given && !slices.Contains(groups, authn.Everyone):
		groups = append(slices.Clone(groups), authn.Everyone)
	case given:
	case known:
		groups = implied
	default:
		return nil, "the groups of this caller are not known"
	}
	f := authn.Facts{Username: username, Groups: groups}
	c, err := authn.NewClusterCaller(f)
	if person {
		c, err = authn.NewPerson(login, f)
	}
	if err != nil {
		return nil, "no caller can have this name: " + err.Error()
	}
	return c, ""
}
