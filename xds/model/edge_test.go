package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/xds/model"
)

// whole is the smallest edge that validates.
func whole() *model.Edge {
	breaker := model.Breaker{Connections: 1, Pending: 1, Requests: 1, Retries: 1}
	tcp := []model.Address{{Host: "10.0.0.1", Port: 8080}}
	return &model.Edge{
		Listen: model.Address{Host: "0.0.0.0", Port: 8080},
		Limits: model.Limits{
			MaxHeadersKiB: 32, MaxHeaders: 100, HeadersTimeout: time.Second, RequestTimeout: time.Second, IdleTimeout: time.Minute,
			ConnectionIdleTimeout: time.Minute, MaxStreamDuration: time.Hour, BufferBytes: 32 << 10,
			MaxConcurrentStreams: 100, StreamWindow: 65536, ConnectionWindow: 1 << 20,
		},
		Authz:        "authz",
		GRPCReply:    model.Reply{Status: 400, Rule: "GP-EDGE-400", Message: "no gRPC"},
		AuthzTimeout: time.Second,
		Routes: []model.Route{
			{Op: "listLive", Method: "GET", Path: "/v1/apps/{app}/live", Tier: "T0", Cluster: "livehub", Timeout: time.Second, MaxBodyBytes: 1},
			{Op: "streamEvents", Method: "GET", Path: "/v1/events", Tier: "T0", Cluster: "livehub", Stream: true, Silence: time.Minute, MaxBodyBytes: 1},
		},
		Clusters: []model.Cluster{
			{Name: "authz", Endpoints: []model.Address{{Path: "/run/authz.sock"}}, HTTP2: true, ConnectTimeout: time.Second, Breaker: breaker},
			{Name: "livehub", Endpoints: tcp, ConnectTimeout: time.Second, Breaker: breaker},
			{Name: "otlp", ConnectTimeout: time.Second, Breaker: breaker},
		},
		Replies: []model.Reply{
			{Status: 400, Rule: "GP-EDGE-400", Message: "no"}, {Status: 503, Rule: "GP-EDGE-503", Message: "not now"},
		},
		Tracing: model.Tracing{Service: "edge", Cluster: "otlp", Ratio: 1},
	}
}

func TestAWholeEdgeValidates(t *testing.T) {
	t.Parallel()
	if err := whole().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestTheZeroEdgeIsRefusedForEverythingThatItLacks(t *testing.T) {
	t.Parallel()
	err := (&model.Edge{}).Validate()
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{
		"listen:", "limits.maxHeadersKiB", "limits.maxHeaders:", "limits.headersTimeout", "limits.requestTimeout", "limits.idleTimeout",
		"limits.connectionIdleTimeout", "limits.maxStreamDuration", "limits.bufferBytes", "limits.maxConcurrentStreams", "limits.streamWindow",
		"limits.connectionWindow", "reply 400: missing", "reply 503: missing", "tracing.service", `authz: there is no cluster ""`,
		`tracing: there is no cluster ""`, "authz: a timeout of 0s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q", want)
		}
	}
}

func TestWhatMakesAnEdgeUnfit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(*model.Edge)
		want  string
	}{
		"listening on a Unix socket":          {func(e *model.Edge) { e.Listen = model.Address{Path: "/run/x"} }, "listen: a Unix socket will not do"},
		"a certificate by a relative path":    {func(e *model.Edge) { e.TLS = &model.ListenerTLS{CertFile: "tls.crt", KeyFile: "/a/tls.key"} }, `listen.tls: the certificate: "tls.crt" is not the absolute path`},
		"a certificate without a key":         {func(e *model.Edge) { e.TLS = &model.ListenerTLS{CertFile: "/a/tls.crt"} }, `listen.tls: the key: "" is not the absolute path`},
		"a key in another folder":             {func(e *model.Edge) { e.TLS = &model.ListenerTLS{CertFile: "/a/tls.crt", KeyFile: "/b/tls.key"} }, "in different folders"},
		"TLS without authorities":             {func(e *model.Edge) { e.Clusters[2].TLS = &model.ClusterTLS{ServerName: "x"} }, `cluster "otlp": the authorities: "" is not`},
		"TLS to nobody":                       {func(e *model.Edge) { e.Clusters[2].TLS = &model.ClusterTLS{CAFile: "/ca.crt"} }, `cluster "otlp": the server's name is missing`},
		"people at the edge's own address":    {func(e *model.Edge) { e.People = people(e.Listen, "people.example") }, "people.listen: the address of the edge's own listener"},
		"people on a Unix socket":             {func(e *model.Edge) { e.People = people(model.Address{Path: "/run/x"}, "people.example") }, "people.listen: a Unix socket will not do"},
		"people without a host":               {func(e *model.Edge) { e.People = people(model.Address{Host: "0.0.0.0", Port: 1}) }, "people.hosts: missing"},
		"people under any host":               {func(e *model.Edge) { e.People = people(model.Address{Host: "0.0.0.0", Port: 1}, "*") }, `people.hosts: "*" is not a host's name`},
		"people under every host of a domain": {func(e *model.Edge) { e.People = people(model.Address{Host: "0.0.0.0", Port: 1}, "*.example") }, `people.hosts: "*.example" is not`},
		"people under a host in upper case":   {func(e *model.Edge) { e.People = people(model.Address{Host: "0.0.0.0", Port: 1}, "People.example") }, `people.hosts: "People.example" is not`},
		"people under a host with a port":     {func(e *model.Edge) { e.People = people(model.Address{Host: "0.0.0.0", Port: 1}, "people.example:80") }, `people.hosts: "people.example:80" is not`},
		"people under one host twice": {func(e *model.Edge) {
			e.People = people(model.Address{Host: "0.0.0.0", Port: 1}, "a.example", "a.example")
		}, "people.hosts: a.example is given twice"},
		"listening without a port":              {func(e *model.Edge) { e.Listen.Port = 0 }, "listen: the port is missing"},
		"a window below the protocol's":         {func(e *model.Edge) { e.Limits.StreamWindow = 65534 }, "limits.streamWindow: 65534"},
		"more headers than Envoy can count":     {func(e *model.Edge) { e.Limits.MaxHeadersKiB = 9000 }, "limits.maxHeadersKiB: 9000"},
		"a negative timeout":                    {func(e *model.Edge) { e.Limits.IdleTimeout = -1 }, "limits.idleTimeout: -1ns is not positive"},
		"a ratio over one":                      {func(e *model.Edge) { e.Tracing.Ratio = 1.1 }, "tracing.ratio: 1.1"},
		"a ratio that is no number":             {func(e *model.Edge) { e.Tracing.Ratio = math.NaN() }, "tracing.ratio: NaN"},
		"a reply that is no error":              {func(e *model.Edge) { e.Replies[0].Status = 200 }, "reply 200: not the status of an error"},
		"a reply twice":                         {func(e *model.Edge) { e.Replies = append(e.Replies, e.Replies[0]) }, "reply 400: given twice"},
		"a reply to gRPC that is no error":      {func(e *model.Edge) { e.GRPCReply.Status = 200 }, "the reply to gRPC 200: not the status of an error"},
		"no reply to gRPC":                      {func(e *model.Edge) { e.GRPCReply = model.Reply{} }, "the reply to gRPC 0: needs a rule and a message"},
		"a reply without a rule":                {func(e *model.Edge) { e.Replies[0].Rule = "" }, "reply 400: needs a rule and a message"},
		"a route to nowhere":                    {func(e *model.Edge) { e.Routes[0].Cluster = "runs" }, `route listLive: there is no cluster "runs"`},
		"an operation twice":                    {func(e *model.Edge) { e.Routes[1].Op = "listLive" }, `route "listLive": given twice`},
		"two operations of one call":            {func(e *model.Edge) { e.Routes[1].Path = "/v1/apps/{name}/live" }, `route "streamEvents": matches the same calls as "listLive"`},
		"an operation without a tier":           {func(e *model.Edge) { e.Routes[0].Tier = "" }, "the tier is missing"},
		"an operation without a timeout":        {func(e *model.Edge) { e.Routes[0].Timeout = 0 }, "a timeout of 0s"},
		"a stream with a timeout":               {func(e *model.Edge) { e.Routes[1].Timeout = time.Second }, "a timeout of 1s"},
		"a stream that may be silent for ever":  {func(e *model.Edge) { e.Routes[1].Silence = 0 }, "a silence of 0s"},
		"a call with a bound on silence":        {func(e *model.Edge) { e.Routes[0].Silence = time.Minute }, "a silence of 1m0s"},
		"a negative timeout of an operation":    {func(e *model.Edge) { e.Routes[0].Timeout = -time.Second }, "a timeout of -1s"},
		"a rate limit that is none":             {func(e *model.Edge) { e.Routes[0].RateLimit.Bucket = "defaults" }, "rate limit: per: 0s"},
		"a caller's rate limit that is none":    {func(e *model.Edge) { e.Routes[0].CallerRateLimit.Burst = 1 }, "rate limit: bucket"},
		"a body without a bound":                {func(e *model.Edge) { e.Routes[0].MaxBodyBytes = 0 }, "the body has no bound"},
		"a name that is no operation's":         {func(e *model.Edge) { e.Routes[0].Op = "_badpath" }, "the name is not an operationId"},
		"a method that is none":                 {func(e *model.Edge) { e.Routes[0].Method = "get" }, `method "get" is not one`},
		"a path that is none":                   {func(e *model.Edge) { e.Routes[0].Path = "v1" }, "does not begin with a slash"},
		"a path with an empty segment":          {func(e *model.Edge) { e.Routes[0].Path = "/v1//live" }, `segment "" is neither plain nor a variable`},
		"a path with an escape":                 {func(e *model.Edge) { e.Routes[0].Path = "/v1/a%20b" }, `segment "a%20b" is neither plain nor a variable`},
		"a path with dots":                      {func(e *model.Edge) { e.Routes[0].Path = "/v1/../x" }, "is not canonical"},
		"a variable in a part of a segment":     {func(e *model.Edge) { e.Routes[0].Path = "/v1/a{app}" }, `segment "a{app}" is neither plain nor a variable`},
		"a variable longer than Envoy takes":    {func(e *model.Edge) { e.Routes[0].Path = "/v1/{abcdefghijklmnopqrstu}" }, "is longer than 20"},
		"a variable twice":                      {func(e *model.Edge) { e.Routes[0].Path = "/v1/{app}/{app}" }, "variable {app} stands twice"},
		"an audit field of the edge's own":      {func(e *model.Edge) { e.Routes[0].AuditFields = []string{"caller"} }, `audit field "caller" is taken`},
		"an audit field twice":                  {func(e *model.Edge) { e.Routes[0].AuditFields = []string{"name", "name"} }, `audit field "name" is taken`},
		"an audit field that is a format":       {func(e *model.Edge) { e.Routes[0].AuditFields = []string{"a:b%"} }, "is not a plain name"},
		"a cluster twice":                       {func(e *model.Edge) { e.Clusters = append(e.Clusters, e.Clusters[0]) }, `cluster "authz": given twice`},
		"a cluster with an odd name":            {func(e *model.Edge) { e.Clusters[1].Name = "a b" }, `cluster "a b": not a plain name`},
		"a cluster that may not connect":        {func(e *model.Edge) { e.Clusters[1].ConnectTimeout = 0 }, "a connect timeout of 0s is not positive"},
		"a cluster without bounds":              {func(e *model.Edge) { e.Clusters[1].Breaker.Pending = 0 }, "every bound of the breaker must be positive"},
		"an endpoint without a host":            {func(e *model.Edge) { e.Clusters[1].Endpoints[0].Host = "" }, `host "" is neither an IP nor a name`},
		"an endpoint that is two things":        {func(e *model.Edge) { e.Clusters[0].Endpoints[0].Port = 1 }, "both a host and a socket path"},
		"a relative socket":                     {func(e *model.Edge) { e.Clusters[0].Endpoints[0].Path = "authz.sock" }, "is not absolute"},
		"a socket path that the kernel refuses": {func(e *model.Edge) { e.Clusters[0].Endpoints[0].Path = "/" + strings.Repeat("x", 99) }, "below 100 bytes"},
		"names and addresses mixed": {func(e *model.Edge) {
			e.Clusters[1].Endpoints = append(e.Clusters[1].Endpoints, model.Address{Host: "livehub", Port: 1})
		}, "names and fixed addresses cannot be mixed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := whole()
			tt.spoil(e)
			err := e.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func people(on model.Address, hosts ...string) *model.PeopleRoute {
	return &model.PeopleRoute{Listen: on, Hosts: hosts}
}

func TestThePeoplesRouteServesTheAPIAndNothingElse(t *testing.T) {
	t.Parallel()
	e := whole()
	e.People = people(model.Address{Host: "0.0.0.0", Port: 8090}, "glidepath-api.example", "10.0.0.1")
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/v1/live": true, "/v1/apps/{app}/live": true, "/v1": false, "/v10/live": false, "/internal/renew": false, "/metrics": false, "/V1/live": false,
	} {
		if got := e.People.Serves(model.Route{Path: path}); got != want {
			t.Errorf("%s is served: %t", path, got)
		}
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	e := whole()
	e.Listen.Port = 0
	e.Routes[0].Tier = ""
	e.Clusters[1].ConnectTimeout = 0
	err := e.Validate()
	for _, want := range []string{"listen:", "the tier is missing", "connect timeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestShapeForgetsTheNamesOfVariables(t *testing.T) {
	t.Parallel()
	got := []string{model.Shape("/v1/apps/{app}/live"), model.Shape("/v1/apps/{name}/live"), model.Shape("/v1/live")}
	if want := []string{"/v1/apps/{}/live", "/v1/apps/{}/live", "/v1/live"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
