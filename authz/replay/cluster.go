package replay

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

// Access asks a cluster what callers may do, as authz does.
type Access struct {
	*review.Access
	client *review.Client
}

// NewAccess gives an Access to a cluster. Close it when done.
func NewAccess(cluster *rest.Config) (*Access, error) {
	client, err := review.NewClient(cluster)
	if err != nil {
		return nil, err
	}
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		return nil, err
	}
	access, err := review.NewAccess(client, slots, review.NewMetrics(prometheus.NewRegistry(), slots))
	if err != nil {
		return nil, err
	}
	return &Access{Access: access, client: client}, nil
}

// Close ends the questions under way and drops connections.
func (a *Access) Close() {
	a.Access.Close()
	a.client.Close()
}

// Namespaces gives the namespaces of a cluster that only has roles: those that
// are known, and for every other app what its calls say. An app that was found
// has an app- namespace, one whose name was held twice has both, and one that was
// not found has none. Of an app that was only ever refused for want of a right,
// nobody was told whether it is there: it counts as there, so that a right which
// its caller would gain shows.
func (t *Tally) Namespaces(known []string) namespaces.Fixed {
	fixed := namespaces.Fixed{}
	for _, name := range known {
		fixed[name] = true
	}
	missing, found := map[string]bool{}, map[string]bool{}
	for k := range t.kinds {
		app, infra := "app-"+k.app+"-cicd", "infra-"+k.app+"-cicd"
		switch {
		case k.app == "" || fixed[app] || fixed[infra]:
		case k.rule == problem.Conflict.ID:
			found[app], found[infra] = true, true
		case k.allowed && k.op != whoami:
			found[app] = true
		case k.rule == problem.NotFound.ID:
			missing[app] = true
		}
	}
	for k := range t.kinds {
		app, infra := "app-"+k.app+"-cicd", "infra-"+k.app+"-cicd"
		if k.app != "" && !fixed[app] && !fixed[infra] && !found[app] && !missing[app] {
			found[app] = true
		}
	}
	for name := range found {
		fixed[name] = true
	}
	return fixed
}

// whoami is allowed about an app whether there is one or not.
const whoami = "whoami"
