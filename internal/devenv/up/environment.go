package up

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/fleet"
)

// tokenLife is how long the callers' tokens are good. A person's is good for an hour, as with a real provider.
const tokenLife = 24 * time.Hour

// environment is the text of demo.env: variables that a shell can source.
func environment(ctx context.Context, g *devenv.Gateway) ([]byte, error) {
	var text bytes.Buffer
	set := func(name, value string) { fmt.Fprintf(&text, "%s=%s\n", name, quote(value)) }
	edge := g.Edges[0]
	metrics := []string{"authz=" + edge.AuthzMetrics, "xds=" + edge.XDSMetrics}
	var backends []string
	for _, b := range slices.Concat(g.Livehubs, g.Runs) {
		metrics = append(metrics, b.Process.Name()+"="+b.Metrics)
		backends = append(backends, b.Process.Name()+"="+b.URL)
	}
	set("GLIDEPATH_URL", g.URL)
	set("GLIDEPATH_PEOPLE_URL", edge.PeopleURL())
	set("KUBECONFIG", g.APIServer.Kubeconfig)
	set("REDIS_URL", g.Redis.URL)
	for _, caller := range fleet.Callers() {
		token, err := fleet.Token(ctx, g.APIServer.Admin, caller, tokenLife)
		if err != nil {
			return nil, err
		}
		set(caller.EnvVar, token)
	}
	person, err := g.Provider.Token(fleet.PersonReader, nil)
	if err != nil {
		return nil, err
	}
	set("ID_TOKEN_PERSON", person)
	set("GLIDEPATH_OIDC_ISSUER", g.Provider.Issuer)
	set("ENVOY_ADMIN", "unix://"+edge.Envoy.Admin)
	set("METRICS_URLS", strings.Join(metrics, ","))
	set("BACKEND_URLS", strings.Join(backends, ","))
	set("AUDIT_LOG", edge.Envoy.AccessLog)
	set("POLICY_FILE", edge.Policy)
	set("DENY_LIST_FILE", g.DenyList)
	return text.Bytes(), nil
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@=,+-]*$`)

// quote makes one word of a value, for a shell.
func quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
