package xds

import (
	"slices"
	"strings"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/envoy"
	"hangar.io/glidepath/xds/policy"
	"hangar.io/glidepath/xds/translate"
)

// RenderOptions say what edge to render. The tags are those of kong.
type RenderOptions struct {
	EdgeOptions
	Policy      string `name:"policy" env:"POLICY_FILE" type:"existingfile" help:"Route policy file. Without one every setting has its default."`
	AdminSocket string `name:"admin-socket" default:"/run/glidepath/admin.sock" help:"Unix socket of Envoy's admin interface."`
}

// Render gives one static configuration of the edge: the bootstrap with all
// that xds would send, from the same code. Where no backends are given, each
// is a host of its own name.
func Render(opts RenderOptions) ([]byte, error) {
	pol, err := readPolicy(opts.Policy)
	if err != nil {
		return nil, err
	}
	operations := api.Operations()
	if opts.Backends == "" {
		opts.Backends = namedHosts(operations)
	}
	res, err := Resources(operations, pol, opts.EdgeOptions)
	if err != nil {
		return nil, err
	}
	bootstrap, err := envoy.Bootstrap{XDSSocket: unusedSocket, AdminSocket: opts.AdminSocket}.Render()
	if err != nil {
		return nil, err
	}
	return translate.Static(bootstrap, res)
}

// unusedSocket is where the bootstrap would look for xds; a static
// configuration does not.
const unusedSocket = "/run/glidepath/xds.sock"

func readPolicy(file string) (PolicyFile, error) {
	if file == "" {
		return PolicyFile{}, nil
	}
	data, err := policy.ReadFile(file)
	return PolicyFile{Name: file, Data: data}, err
}

func namedHosts(operations []api.Operation) string {
	var out []string
	for _, op := range operations {
		if !op.Planned && op.Backend != backendAuthz {
			out = append(out, op.Backend+"="+op.Backend+":8080")
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ";")
}
