package xds

import (
	"errors"
	"strings"

	"hangar.io/glidepath/xds/model"
)

// peopleRoute is nil for an edge without a route for people.
func (o EdgeOptions) peopleRoute() (*model.PeopleRoute, error) {
	switch {
	case o.PeopleListen == "" && len(o.PeopleHosts) == 0:
		return nil, nil
	case o.PeopleListen == "" || len(o.PeopleHosts) == 0:
		return nil, errors.New("--people-listen and --people-hosts: one without the other")
	}
	listen, err := parseAddress("--people-listen", o.PeopleListen)
	out := &model.PeopleRoute{Listen: listen}
	for _, h := range o.PeopleHosts {
		out.Hosts = append(out.Hosts, strings.ToLower(strings.TrimSpace(h)))
	}
	return out, err
}
