package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
)

// guess is a random call: what is sent, and what the one who sends it knows.
type guess struct {
	number int
	op     api.Operation
	app    string // as it was meant; empty is none
	target string // path and query as they are sent
	header http.Header
	host   string // of the route for people; empty is the Service

	caller string // whom the token is of; empty when it is nobody's
	person string // who is named
	// plain says that nothing about the call is odd: then it is decided as what
	// it was meant to be.
	plain bool
}

// guesser makes calls. Nothing of it is shared with what decides them.
type guesser struct{ *rand.Rand }

func pick[T any](g guesser, from ...T) T { return from[g.IntN(len(from))] }

// one says yes one time in n.
func (g guesser) one(n int) bool { return g.IntN(n) == 0 }

func (g guesser) guess(number int) guess {
	out := guess{number: number, op: pick(g, api.Operations()...), header: http.Header{}, plain: true}
	if out.op.Stream && !out.op.Planned {
		out.op, _ = api.Lookup("listRuns") // it would go on for ever
	}
	if out.op.Scope != api.ScopeSelf && (out.op.Scope == api.ScopeApp || g.one(2)) {
		out.app = pick(g, "gate-api", "gate-api", "shop", "postgres", "made-up", "Shop", "a..b", "gate-api;x", strings.Repeat("a", 55))
	}
	g.credential(&out)
	g.behalf(&out)
	g.spell(&out)
	g.forge(&out)
	if g.one(3) {
		out.host = pick(g, "glidepath-api.localhost", "GLIDEPATH-api.localhost:81")
	}
	return out
}

// credential gives the call a token, in one of the ways that there are.
func (g guesser) credential(out *guess) {
	caller := pick(g, "reader", "reader", "app-reader", "operator", "releaser", "delegate", "delegate", "stranger")
	bearer := pick(g, "Bearer ", "bearer ", "BEARER  ") + tokens[caller]
	name := pick(g, "Authorization", "authorization", "AUTHORIZATION", "X-Glidepath-Authorization", "x-GLIDEPATH-authorization")
	switch {
	case g.one(12): // nobody's
		out.header[name] = []string{pick(g, "Bearer nonsense", "Basic abc", "Bearer ", "", "Bearer "+tokens["reader"]+"x", tokens["reader"])}
	case g.one(15): // two that cannot both count
		out.header[name] = []string{bearer, "Bearer " + tokens["reader"]}
	case g.one(10): // two of which the proxy's counts
		out.header["Authorization"] = []string{"Bearer " + tokens["reader"]}
		out.header["X-Glidepath-Authorization"] = []string{bearer}
		out.caller = caller
	default:
		out.header[name] = []string{bearer}
		out.caller = caller
	}
}

// behalf names a person, mostly where that is allowed.
func (g guesser) behalf(out *guess) {
	if out.caller != "delegate" && !g.one(12) || out.caller == "delegate" && g.one(5) {
		return
	}
	name := pick(g, "X-Glidepath-On-Behalf-Of", "x-glidepath-on-behalf-of", "X-GLIDEPATH-ON-BEHALF-OF")
	out.person = pick(g, "user:default/ana", "ben", "Ana B. (team 7)", "people:ana", "system:masters", "a,b", "\xc3\xa9", strings.Repeat("p", 257), "a\tb")
	out.header[name] = []string{out.person}
	if g.one(12) {
		out.header[name] = append(out.header[name], "carl")
		out.person = "a person too many"
	}
}

// spell writes the target, in one of many ways.
func (g guesser) spell(out *guess) {
	segments := strings.Split(strings.TrimPrefix(out.op.Path, "/"), "/")
	for i, s := range segments {
		switch s {
		case "{app}":
			segments[i] = out.app
		case "{env}":
			segments[i] = pick(g, "prod", "staging")
		case "{result}", "{chainId}":
			segments[i] = "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90"
		case "{id}":
			segments[i] = "669fd9a8c5d2f0a1b2c3d4e5"
		case "{name}", "{taskRun}", "{container}":
			segments[i] = pick(g, "ci-1", "build-unit", "step-test")
		}
	}
	path := "/" + strings.Join(segments, "/")
	query := fmt.Sprintf("n=%d", out.number)
	if out.op.Scope == api.ScopeFleet && out.app != "" {
		query += "&app=" + url.QueryEscape(out.app)
	}
	if g.one(3) {
		out.plain = false
		i := 1 + strings.Index(path[1:], "/") // the slash after v1
		path, query = pick(g, path[:i]+"/"+path[i:], path[:i]+"/."+path[i:], path[:i]+"/x/.."+path[i:], path+"/", path[:i]+"/%2e"+path[i:],
			path[:i]+"/%2f"+path[i:], strings.Replace(path, "a", "%61", 1), strings.ToUpper(path), path+";x", path+"%00", path+"/../"+segments[len(segments)-1],
			path[:i]+"/apps/shop/../.."+path[i:], strings.Replace(path, "gate-api", "shop/../gate-api", 1)), pick(g, query, query+"&app=shop", query+"&a%70p=shop", query+"&app", query+"?app=shop")
	}
	out.target = path + "?" + query
}

// forge adds what only the gateway may say, in spellings that some part might
// take for it.
func (g guesser) forge(out *guess) {
	for range g.IntN(3) {
		name := pick(g, "X-Glidepath-Identity", "x-glidepath-IDENTITY", "X-Request-Id", "X-Glidepath-Audit", "X-Http-Method-Override", "X-Original-Url",
			"X-Envoy-Original-Path", "X-Forwarded-Host", "Forwarded", "Cookie", "X-Glidepath-Internal-Op", "X-Remote-User", "Impersonate-User")
		out.header[name] = []string{pick(g, "eyJhbGciOiJub25lIn0.e30.", "promoteEnvironment", "/v1/apps/shop/environments/prod/rollback", "POST", "shop")}
	}
}

// mayCall says, by hand, what the sample callers may use: in every namespace,
// but for the reader of one app. It says nothing of what is no app.
func mayCall(caller, op, app string) bool {
	runWrites, releaseWrites := []string{"rerunPipelineRun", "cancelPipelineRun"}, []string{"promoteEnvironment", "rollbackEnvironment"}
	isRunWrite, isReleaseWrite := slices.Contains(runWrites, op), slices.Contains(releaseWrites, op)
	if op == "whoami" || op == "getContract" {
		return true
	}
	switch caller {
	case "delegate":
		return true
	case "reader":
		return !isRunWrite && !isReleaseWrite
	case "app-reader":
		return !isRunWrite && !isReleaseWrite && app == "gate-api"
	case "operator":
		return isRunWrite
	case "releaser":
		return isReleaseWrite
	}
	return false
}

// mayPass says whether a call may reach a backend as this operation on this
// app.
func (out guess) mayPass(op api.Operation, app string) bool {
	write := op.Tier != api.TierRead
	switch {
	case out.caller == "" || !mayCall(out.caller, op.ID, app):
		return false
	case out.person != "" && (out.caller != "delegate" || !slices.Contains([]string{"user:default/ana", "ben", "Ana B. (team 7)", "people:ana", "system:masters"}, out.person)):
		return false
	case out.caller == "delegate" && write && out.person == "":
		return false
	}
	return app == "" && op.Scope != api.ScopeApp || slices.Contains([]string{"gate-api", "shop", "postgres"}, app)
}

// do sends the call.
func (out guess) do(t *testing.T) (answer, error) {
	t.Helper()
	w := service()
	if out.host != "" {
		w = peopleRoute()
	}
	return w.raw(t, out)
}
