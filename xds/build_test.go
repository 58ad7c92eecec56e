package xds

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/ratelimit"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/xds/model"
	"hangar.io/glidepath/xds/policy"
)

func options() EdgeOptions {
	return EdgeOptions{
		Listen: "0.0.0.0:8080", Backends: "livehub=10.0.0.1:8080,10.0.0.2:8080;runs=10.0.0.3:8080",
		AuthzSocket: "/run/authz.sock", AuthzHTTPSocket: "/run/authz-http.sock", TraceConfig: telemetry.TraceConfig{TraceRatio: 1},
	}
}

func build(t *testing.T, opts EdgeOptions, pol string) *model.Edge {
	t.Helper()
	var parsed policy.Policy
	if pol != "" {
		var err error
		if parsed, err = policy.Parse("policy", []byte(pol), api.Operations()); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Build(api.Operations(), parsed, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func routeOf(t *testing.T, e *model.Edge, op string) model.Route {
	t.Helper()
	i := slices.IndexFunc(e.Routes, func(r model.Route) bool { return r.Op == op })
	if i < 0 {
		t.Fatalf("no route for %s", op)
	}
	return e.Routes[i]
}

func clusterNamed(t *testing.T, e *model.Edge, name string) model.Cluster {
	t.Helper()
	i := slices.IndexFunc(e.Clusters, func(c model.Cluster) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no cluster %s", name)
	}
	return e.Clusters[i]
}

func TestTheEdgeServesWhatTheContractDoesNotPlan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		planned string
		want    func(api.Operation) bool
	}{
		"as it stands":     {"", func(op api.Operation) bool { return !op.Planned }},
		"with the planned": {"10.0.0.9:1", func(api.Operation) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options()
			opts.ServePlanned = tt.planned
			e := build(t, opts, "")
			var want, got []string
			for _, op := range api.Operations() {
				if tt.want(op) {
					want = append(want, op.ID+" "+op.Method+" "+op.Path+" "+string(op.Tier))
				}
			}
			for _, r := range e.Routes {
				got = append(got, r.Op+" "+r.Method+" "+r.Path+" "+r.Tier)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
}

func TestEachOperationGoesToItsBackend(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.ServePlanned = "10.0.0.9:1"
	e := build(t, opts, "")
	for op, want := range map[string]string{
		"listLive": "livehub", "whoami": "authz-http", "getContract": "authz-http", "listRuns": "runs", "listReleases": "planned",
		"streamLiveRuns": "livehub-streams", "streamEvents": "planned-streams", "rerunPipelineRun": "planned",
	} {
		if got := routeOf(t, e, op).Cluster; got != want {
			t.Errorf("%s goes to %s, want %s", op, got, want)
		}
	}
	if got := clusterNamed(t, e, "livehub").Endpoints; !slices.Equal(got, []model.Address{{Host: "10.0.0.1", Port: 8080}, {Host: "10.0.0.2", Port: 8080}}) {
		t.Errorf("livehub is at %v", got)
	}
	if c := clusterNamed(t, e, "authz"); !c.HTTP2 || c.Endpoints[0].Path != "/run/authz.sock" {
		t.Errorf("authz is %+v", c)
	}
	if c := clusterNamed(t, e, "authz-http"); c.HTTP2 || c.Endpoints[0].Path != "/run/authz-http.sock" {
		t.Errorf("authz's operations are at %+v", c)
	}
}

func TestAStreamHasAClusterOfItsOwnThatIsNotTheFirstToGiveWay(t *testing.T) {
	t.Parallel()
	e, err := Build(api.Operations(), policy.Policy{}, options())
	if err != nil {
		t.Fatal(err)
	}
	r := routeOf(t, e, "streamLiveRuns")
	if r.Cluster != "livehub-streams" || r.Timeout != 0 || !r.Stream {
		t.Errorf("the route is %+v", r)
	}
	calls, streams := clusterNamed(t, e, "livehub"), clusterNamed(t, e, "livehub-streams")
	if !slices.Equal(calls.Endpoints, streams.Endpoints) || streams.Breaker.Requests <= calls.Breaker.Requests {
		t.Errorf("calls %+v, streams %+v", calls, streams)
	}
}

func TestALogMayBeSilentForLongerThanWhatIsPinged(t *testing.T) {
	t.Parallel()
	e, err := Build(api.Operations(), policy.Policy{}, options())
	if err != nil {
		t.Fatal(err)
	}
	for op, want := range map[string]time.Duration{"getLiveLogs": time.Hour, "streamLiveRuns": time.Minute, "listLive": 0} {
		if got := routeOf(t, e, op).Silence; got != want {
			t.Errorf("%s may be silent for %s, want %s", op, got, want)
		}
	}
}

func TestThePolicyReachesTheRoutes(t *testing.T) {
	t.Parallel()
	e := build(t, options(), "version: 1\nbackends: {livehub: {timeout: 9s}}\noperations: {listLive: {timeout: 3s}}\n")
	for op, want := range map[string]time.Duration{"listLive": 3 * time.Second, "listLiveRuns": 9 * time.Second, "whoami": policy.DefaultTimeout} {
		if got := routeOf(t, e, op).Timeout; got != want {
			t.Errorf("%s has %s, want %s", op, got, want)
		}
	}
}

func TestEveryAuditFieldIsOfAnOperation(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment", "validateCicd"} {
		if _, ok := api.Lookup(op); !ok || len(auditFields(op)) == 0 {
			t.Errorf("%s is no operation with audit fields", op)
		}
	}
	for _, op := range api.Operations() {
		if fields := auditFields(op.ID); (op.Method == "POST") != (len(fields) > 0) {
			t.Errorf("%s %s may add %v", op.Method, op.ID, fields)
		}
	}
}

func TestWhatEnvoyAnswersItselfIsInTheErrorTable(t *testing.T) {
	t.Parallel()
	var got []uint32
	for _, r := range build(t, options(), "").Replies {
		got = append(got, r.Status)
	}
	if want := []uint32{400, 404, 405, 408, 413, 426, 429, 431, 502, 503, 504}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatKeepsAnEdgeFromBeingBuilt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*EdgeOptions)
		want   []string
	}{
		"a served operation without a backend": {func(o *EdgeOptions) { o.Backends = "" }, []string{
			"operation listLive: --backends does not say where livehub is", "operation listLiveTaskRuns:",
		}},
		"a backend that nothing needs": {func(o *EdgeOptions) { o.Backends += ";redis=10.0.0.4:1" }, []string{
			"--backends: no served operation has the backend redis",
		}},
		"a backend of planned operations only": {func(o *EdgeOptions) { o.Backends += ";releases=10.0.0.3:1" }, []string{
			"--backends: no served operation has the backend releases",
		}},
		"every option at once": {func(o *EdgeOptions) {
			*o = EdgeOptions{Listen: "8080", Backends: "livehub;x=1;livehub=a:b", AuthzSocket: "authz.sock", ServePlanned: "x", TraceConfig: telemetry.TraceConfig{OTLPEndpoint: "https://user:pass@c", TraceRatio: 2}}
		}, []string{
			`--listen: "8080" is not host:port`, `--backends: "livehub" is not name=host:port`, `--backends: x: "1" is not host:port`,
			`--backends: livehub: "a:b" is not host:port`, `--authz-socket: "authz.sock" is not an absolute path`,
			`--authz-http-socket: "" is not an absolute path`, `--serve-planned: "x" is not host:port`, "--otlp-endpoint: not a plain http://host:port",
			"--trace-ratio: 2 is not between 0 and 1",
		}},
		"people without a host":        {func(o *EdgeOptions) { o.PeopleListen = "0.0.0.0:8090" }, []string{"--people-listen and --people-hosts: one without the other"}},
		"people without an address":    {func(o *EdgeOptions) { o.PeopleHosts = []string{"people.example"} }, []string{"--people-listen and --people-hosts: one without the other"}},
		"people at an address of none": {func(o *EdgeOptions) { o.PeopleListen, o.PeopleHosts = "8090", []string{"people.example"} }, []string{`--people-listen: "8090" is not host:port`}},
		"people under any host":        {func(o *EdgeOptions) { o.PeopleListen, o.PeopleHosts = "0.0.0.0:8090", []string{"*"} }, []string{`people.hosts: "*" is not a host's name`}},
		"a backend given twice":        {func(o *EdgeOptions) { o.Backends = "livehub=a:1;livehub=b:1;runs=c:1" }, []string{"--backends: livehub is given twice"}},
		"a port of nothing":            {func(o *EdgeOptions) { o.Listen = "0.0.0.0:0" }, []string{`--listen: "0.0.0.0:0" is not host:port`}},
		"names and addresses":          {func(o *EdgeOptions) { o.Backends = "livehub=livehub:1,10.0.0.1:1;runs=10.0.0.3:1" }, []string{"names and fixed addresses cannot be mixed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options()
			tt.change(&opts)
			_, err := Build(api.Operations(), policy.Policy{}, opts)
			if err == nil {
				t.Fatal("built")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "pass") {
				t.Error("the error shows a credential")
			}
		})
	}
}

func TestThePeoplesRouteIsWhatTheOptionsSay(t *testing.T) {
	t.Parallel()
	if e := build(t, options(), ""); e.People != nil {
		t.Errorf("without options there is a route for people: %+v", e.People)
	}
	opts := options()
	opts.PeopleListen, opts.PeopleHosts = "0.0.0.0:8090", []string{"Glidepath-API.example", " other.example"}
	e := build(t, opts, "")
	want := model.PeopleRoute{Listen: model.Address{Host: "0.0.0.0", Port: 8090}, Hosts: []string{"glidepath-api.example", "other.example"}}
	if e.People == nil || e.People.Listen != want.Listen || !slices.Equal(e.People.Hosts, want.Hosts) {
		t.Errorf("got %+v, want %+v", e.People, want)
	}
}

func TestTLSOfTheListenerAndOfTheCollector(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.TLSCertFile, opts.TLSKeyFile = "/tls/tls.crt", "/tls/tls.key"
	opts.OTLPEndpoint, opts.OTLPCAFile = "https://collector.example", "/otlp/ca.crt"
	e := build(t, opts, "")
	if e.TLS == nil || *e.TLS != (model.ListenerTLS{CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key"}) {
		t.Errorf("the listener has %+v", e.TLS)
	}
	c := clusterNamed(t, e, "otlp")
	if c.TLS == nil || *c.TLS != (model.ClusterTLS{CAFile: "/otlp/ca.crt", ServerName: "collector.example"}) || e.Tracing.URL != "https://collector.example/v1/traces" {
		t.Errorf("the collector is %+v at %s", c, e.Tracing.URL)
	}
	if e := build(t, options(), ""); e.TLS != nil || clusterNamed(t, e, "otlp").TLS != nil {
		t.Error("there is TLS that nobody asked for")
	}
	for want, change := range map[string]func(*EdgeOptions){
		"--tls-cert-file and --tls-key-file: one without the other": func(o *EdgeOptions) { o.TLSKeyFile = "" },
		"in different folders":                       func(o *EdgeOptions) { o.TLSKeyFile = "/key/tls.key" },
		"--otlp-ca-file: missing":                    func(o *EdgeOptions) { o.OTLPCAFile = "" },
		"--otlp-ca-file: the collector is not https": func(o *EdgeOptions) { o.OTLPEndpoint = "http://collector.example" },
	} {
		opts := opts
		change(&opts)
		if _, err := Build(api.Operations(), policy.Policy{}, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheCollectorsAddress(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]struct {
		url     string
		address model.Address
	}{
		"http://collector:4318":     {"http://collector:4318/v1/traces", model.Address{Host: "collector", Port: 4318}},
		"http://collector":          {"http://collector/v1/traces", model.Address{Host: "collector", Port: 4318}},
		"http://10.0.0.1:99/base/":  {"http://10.0.0.1:99/base/v1/traces", model.Address{Host: "10.0.0.1", Port: 99}},
		"http://[2001:db8::1]:4318": {"http://[2001:db8::1]:4318/v1/traces", model.Address{Host: "2001:db8::1", Port: 4318}},
	} {
		opts := options()
		opts.OTLPEndpoint = endpoint
		e := build(t, opts, "")
		if got := clusterNamed(t, e, "otlp").Endpoints; e.Tracing.URL != want.url || !slices.Equal(got, []model.Address{want.address}) {
			t.Errorf("%s gives %s at %v", endpoint, e.Tracing.URL, got)
		}
	}
	if e := build(t, options(), ""); e.Tracing.URL != "" || len(clusterNamed(t, e, "otlp").Endpoints) != 0 {
		t.Error("without a collector there is one")
	}
}

func TestARouteHasTheRateLimitsOfItsPolicy(t *testing.T) {
	t.Parallel()
	e := build(t, options(), "version: 1\ndefaults: {rateLimit: {requests: 9, per: 1s}}\noperations: {listLive: {callerRateLimit: {requests: 7, per: 1m}}}\n")
	for _, r := range e.Routes {
		each := ratelimit.Limit{Bucket: "defaults", Requests: 9, Per: time.Second, Burst: 9}
		all := ratelimit.Limit{}
		if r.Op == "listLive" {
			all = ratelimit.Limit{Bucket: "operations.listLive", Requests: 7, Per: time.Minute, Burst: 7}
		}
		if r.RateLimit != each || r.CallerRateLimit != all {
			t.Errorf("%s has %s and %s", r.Op, r.RateLimit, r.CallerRateLimit)
		}
	}
}
