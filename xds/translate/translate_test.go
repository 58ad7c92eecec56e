package translate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/internal/ratelimit"
	"hangar.io/glidepath/xds/model"
	"hangar.io/glidepath/xds/translate"
)

var update = flag.Bool("update", false, "rewrite the golden files, and remove those of no case")

// base is an edge with one operation of each kind that differs.
func base() *model.Edge {
	breaker := model.Breaker{Connections: 10, Pending: 11, Requests: 12, Retries: 13}
	return &model.Edge{
		Listen: model.Address{Host: "0.0.0.0", Port: 8080},
		Limits: model.Limits{
			MaxHeadersKiB: 32, MaxHeaders: 100, HeadersTimeout: 5 * time.Second, RequestTimeout: 30 * time.Second, IdleTimeout: time.Minute,
			ConnectionIdleTimeout: 5 * time.Minute, MaxStreamDuration: 24 * time.Hour, BufferBytes: 32 << 10,
			MaxConcurrentStreams: 100, StreamWindow: 64 << 10, ConnectionWindow: 1 << 20,
		},
		Authz:        "authz",
		GRPCReply:    model.Reply{Status: 400, Rule: "GP-EDGE-400", Message: "no gRPC"},
		AuthzTimeout: 2500 * time.Millisecond,
		Routes: []model.Route{
			{Op: "listLive", Method: "GET", Path: "/v1/apps/{app}/live", Tier: "T0", Cluster: "livehub", Timeout: 10 * time.Second, MaxBodyBytes: 16 << 10},
		},
		Clusters: []model.Cluster{
			{Name: "otlp", ConnectTimeout: time.Second, Breaker: breaker},
			{Name: "livehub", Endpoints: []model.Address{{Host: "10.0.0.1", Port: 8080}}, ConnectTimeout: time.Second, Breaker: breaker},
			{Name: "authz", Endpoints: []model.Address{{Path: "/run/glidepath/authz.sock"}}, HTTP2: true, ConnectTimeout: time.Second, Breaker: breaker},
		},
		Replies: []model.Reply{
			{Status: 503, Rule: "GP-EDGE-503", Message: "not now", Hint: "try again"}, {Status: 400, Rule: "GP-EDGE-400", Message: "not that"},
		},
		Tracing: model.Tracing{Service: "glidepath-edge", Cluster: "otlp", Ratio: 1},
	}
}

// cases are the golden files by name. All but the first show only the kind of
// resource that they are about.
func cases() map[string]struct {
	change func(*model.Edge)
	show   func(*translate.Resources) []proto.Message
} {
	listeners := func(r *translate.Resources) []proto.Message { return messages(r.Listeners) }
	routes := func(r *translate.Resources) []proto.Message { return messages(r.Routes) }
	clusters := func(r *translate.Resources) []proto.Message { return messages(r.Clusters) }
	all := func(r *translate.Resources) []proto.Message {
		return slices.Concat(listeners(r), routes(r), clusters(r))
	}
	return map[string]struct {
		change func(*model.Edge)
		show   func(*translate.Resources) []proto.Message
	}{
		"one-operation": {func(*model.Edge) {}, all},
		"route-without-variables": {func(e *model.Edge) {
			e.Routes[0].Path = "/v1/live"
		}, routes},
		"route-stream": {func(e *model.Edge) {
			e.Routes[0].Stream, e.Routes[0].Timeout, e.Routes[0].Silence = true, 0, time.Minute
		}, routes},
		"route-write-with-audit-fields": {func(e *model.Edge) {
			e.Routes[0].Method, e.Routes[0].MaxBodyBytes, e.Routes[0].AuditFields = "POST", 64<<10, []string{"name", "dryRun"}
		}, routes},
		"route-slower-than-idle": {func(e *model.Edge) {
			e.Routes[0].Timeout = 2 * time.Minute
		}, routes},
		"route-rate-limits": {func(e *model.Edge) {
			e.Routes[0].RateLimit = ratelimit.Limit{Bucket: "operations.listLive", Requests: 60, Per: time.Minute, Burst: 20}
			e.Routes[0].CallerRateLimit = ratelimit.Limit{Bucket: "defaults", Requests: 100, Per: time.Second, Burst: 500}
		}, routes},
		"routes-in-order": {func(e *model.Edge) {
			r := e.Routes[0]
			for i, call := range []string{"POST /v1/{x}", "GET /v1/{x}/runs", "GET /v1/plain", "GET /v1/{x}", "GET /v1/{x}/{y}", "GET /v1/plain/{y}"} {
				r.Op = "op" + string(rune('A'+i))
				r.Method, r.Path, _ = strings.Cut(call, " ")
				e.Routes = append(e.Routes, r)
			}
		}, routes},
		"listener-audit-fields-of-two": {func(e *model.Edge) {
			r := e.Routes[0]
			r.Op, r.Path, r.AuditFields = "writeB", "/v1/b", []string{"name", "env"}
			e.Routes = append(e.Routes, r)
			r.Op, r.Path, r.AuditFields = "writeA", "/v1/a", []string{"name"}
			e.Routes = append(e.Routes, r)
		}, listeners},
		"listener-collector": {func(e *model.Edge) {
			e.Tracing.URL, e.Tracing.Ratio = "http://collector:4318/v1/traces", 0.25
		}, listeners},
		"tls-listener": {func(e *model.Edge) {
			e.TLS = &model.ListenerTLS{CertFile: "/etc/tls/tls.crt", KeyFile: "/etc/tls/tls.key"}
		}, func(r *translate.Resources) []proto.Message { return slices.Concat(listeners(r), messages(r.Secrets)) }},
		"tls-collectors": {func(e *model.Edge) {
			e.Clusters[0].Endpoints = []model.Address{{Host: "collector", Port: 4318}}
			e.Clusters[0].TLS = &model.ClusterTLS{CAFile: "/etc/otlp/ca.crt", ServerName: "collector"}
			e.Clusters[1].TLS = &model.ClusterTLS{CAFile: "/etc/livehub/ca.crt", ServerName: "10.0.0.1"}
		}, func(r *translate.Resources) []proto.Message { return slices.Concat(clusters(r), messages(r.Secrets)) }},
		"people": {func(e *model.Edge) {
			e.People = &model.PeopleRoute{Listen: model.Address{Host: "0.0.0.0", Port: 8090}, Hosts: []string{"glidepath-api.example"}}
			// Should anything else ever be on the edge, people do not get to it.
			r := e.Routes[0]
			r.Op, r.Path = "renewStream", "/internal/renew"
			e.Routes = append(e.Routes, r)
		}, func(r *translate.Resources) []proto.Message {
			return slices.Concat(messages(r.Listeners[2:]), messages(r.Routes[1:]))
		}},
		"cluster-names-are-resolved": {func(e *model.Edge) {
			e.Clusters[1].Endpoints = []model.Address{{Host: "livehub-a", Port: 1}, {Host: "livehub-b", Port: 2}}
		}, clusters},
	}
}

func messages[T proto.Message](in []T) []proto.Message {
	var out []proto.Message
	for _, m := range in {
		out = append(out, m)
	}
	return out
}

func render(t *testing.T, e *model.Edge, show func(*translate.Resources) []proto.Message) []byte {
	t.Helper()
	res, err := translate.Translate(e)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, m := range show(res) {
		raw, err := translate.YAML(m)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes()
}

func TestWhatEnvoyIsToldIsTheGoldenFile(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{}
	for name, tt := range cases() {
		file := filepath.Join("testdata", name+".yaml")
		wanted[file] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := base()
			tt.change(e)
			got := render(t, e, tt.show)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs; run go test ./xds/translate -update if that is meant (-want +got):\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch {
		case wanted[file]:
		case *update:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is of no case", file)
		}
	}
}

func TestTheOrderOfTheModelDoesNotMatter(t *testing.T) {
	t.Parallel()
	change := cases()["routes-in-order"].change
	all := func(r *translate.Resources) []proto.Message {
		return slices.Concat(messages(r.Listeners), messages(r.Routes), messages(r.Clusters))
	}
	e := base()
	change(e)
	want := render(t, e, all)
	for range 5 {
		slices.Reverse(e.Routes)
		e.Routes = append(e.Routes[1:], e.Routes[0])
		slices.Reverse(e.Clusters)
		slices.Reverse(e.Replies)
		if diff := cmp.Diff(string(want), string(render(t, e, all))); diff != "" {
			t.Fatalf("another order gives another configuration (-want +got):\n%s", diff)
		}
	}
}

func TestAnEdgeThatIsNotWholeIsNotTranslated(t *testing.T) {
	t.Parallel()
	e := base()
	e.Authz = "nobody"
	if res, err := translate.Translate(e); err == nil || res != nil || !strings.Contains(err.Error(), `no cluster "nobody"`) {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestStaticPutsEverythingIntoOneFile(t *testing.T) {
	t.Parallel()
	res, err := translate.Translate(base())
	if err != nil {
		t.Fatal(err)
	}
	before := proto.CloneOf(res.Listeners[0])
	got, err := translate.Static([]byte("node: {id: edge}\ndynamic_resources: {cds_config: {ads: {}}}\nstatic_resources: {clusters: [{name: xds}]}\n"), res)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"route_config:", "path_template: /v1/apps/{app}/live", "id: edge", "cluster_name: livehub"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the file lacks %q", want)
		}
	}
	for _, no := range []string{"rds:", "dynamic_resources", "name: xds"} {
		if strings.Contains(string(got), no) {
			t.Errorf("the file still has %q", no)
		}
	}
	if !proto.Equal(before, res.Listeners[0]) {
		t.Error("the resources were changed")
	}
}

func TestStaticHasTheSecretsBesideWhatUsesThem(t *testing.T) {
	t.Parallel()
	e := base()
	e.TLS = &model.ListenerTLS{CertFile: "/etc/tls/tls.crt", KeyFile: "/etc/tls/tls.key"}
	e.Clusters[0].TLS = &model.ClusterTLS{CAFile: "/etc/otlp/ca.crt", ServerName: "collector"}
	res, err := translate.Translate(e)
	if err != nil {
		t.Fatal(err)
	}
	before := proto.CloneOf(res.Clusters[2])
	got, err := translate.Static([]byte("node: {id: edge}\n"), res)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"filename: /etc/tls/tls.key", "filename: /etc/otlp/ca.crt", "name: listener\n", "name: authorities-otlp\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the file lacks %q", want)
		}
	}
	if strings.Contains(string(got), "sds_config:") {
		t.Error("a secret is still asked for elsewhere")
	}
	if !proto.Equal(before, res.Clusters[2]) {
		t.Error("the resources were changed")
	}
}

func TestStaticRefusesABootstrapThatIsNone(t *testing.T) {
	t.Parallel()
	res, err := translate.Translate(base())
	if err != nil {
		t.Fatal(err)
	}
	for name, bootstrap := range map[string]string{
		"not YAML": "a: [", "the same key twice": "node: {}\nnode: {}\n", "an unknown field": "nodes: {}\n",
	} {
		if _, err := translate.Static([]byte(bootstrap), res); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
