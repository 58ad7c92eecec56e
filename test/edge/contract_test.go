package edge

import (
	"encoding/json"
	"slices"
	"testing"

	"hangar.io/glidepath/api"
)

// served gives what a running Envoy has routes for, as "METHOD path name".
func (e *edge) served(t *testing.T) []string {
	t.Helper()
	var dump struct {
		Configs []struct {
			DynamicRouteConfigs []struct {
				RouteConfig struct {
					VirtualHosts []struct {
						Routes []struct {
							Name  string
							Match struct {
								Path            string
								PathMatchPolicy struct {
									TypedConfig struct {
										PathTemplate string `json:"path_template"`
									} `json:"typed_config"`
								} `json:"path_match_policy"`
								Headers []struct {
									StringMatch struct{ Exact string } `json:"string_match"`
								}
							}
						}
					} `json:"virtual_hosts"`
				} `json:"route_config"`
			} `json:"dynamic_route_configs"`
		}
	}
	if err := json.Unmarshal([]byte(e.admin(t, "/config_dump")), &dump); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range dump.Configs {
		for _, r := range c.DynamicRouteConfigs {
			for _, h := range r.RouteConfig.VirtualHosts {
				for _, route := range h.Routes {
					if route.Name[0] == '_' {
						continue
					}
					out = append(out, route.Match.Headers[0].StringMatch.Exact+" "+route.Match.Path+route.Match.PathMatchPolicy.TypedConfig.PathTemplate+" "+route.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestEnvoyServesTheContractAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, planned := range map[string]bool{"as it stands": false, "with what is planned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, op := range api.Operations() {
				if !op.Planned || planned {
					want = append(want, op.Method+" "+op.Path+" "+op.ID)
				}
			}
			slices.Sort(want)
			if got := start(t, setup{planned: planned}).served(t); !slices.Equal(got, want) {
				t.Errorf("Envoy serves %v\nthe contract says %v", got, want)
			}
		})
	}
}
