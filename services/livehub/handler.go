package livehub

import (
	"net/http"
	"path"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// backend is the name of this backend in the contract and in identities.
const backend = "livehub"

// handler sorts requests: operations, which need an identity, the probes, and
// all the rest, which is not found.
type handler struct {
	operations *http.ServeMux
	guarded    http.Handler
	probes     *http.ServeMux
	served     map[string]api.Operation // by pattern of the mux
}

// newHandler serves s to calls whose identity v takes. ready says why the
// process should get no calls yet.
func newHandler(s livehubapi.ServerInterface, v *identity.Verifier, ready func() error, tracing *telemetry.Tracing) http.Handler {
	h := &handler{operations: http.NewServeMux(), probes: http.NewServeMux(), served: map[string]api.Operation{}}
	for _, op := range api.Operations() {
		if op.Backend == backend && !op.Planned {
			h.served[op.Method+" "+op.Path] = op
		}
	}
	livehubapi.HandlerWithOptions(s, livehubapi.StdHTTPServerOptions{BaseRouter: h.operations, ErrorHandlerFunc: badParameter})
	h.guarded = identity.Require(v, func(r *http.Request) string { return h.operation(r).ID }, calls.Traced(tracing, http.HandlerFunc(h.serve)))
	lifecycle.Probes(h.probes, ready)
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.operation(r).ID != "" {
		h.guarded.ServeHTTP(w, r)
		return
	}
	if _, pattern := h.probes.Handler(r); pattern != "" && canonical(r) {
		h.probes.ServeHTTP(w, r)
		return
	}
	problem.Write(w, r, problem.New(problem.EdgeNotFound, ""))
}

// serve answers a call that has an identity.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	op := h.operation(r)
	if err := checkQuery(op, r); err != nil {
		problem.Write(w, r, err)
		return
	}
	h.operations.ServeHTTP(w, r)
}

// operation gives the operation that a request is, or a zero one. A mux takes
// HEAD for GET and leads other spellings of a path to the right one; neither
// is an operation of the contract.
func (h *handler) operation(r *http.Request) api.Operation {
	if !canonical(r) {
		return api.Operation{}
	}
	_, pattern := h.operations.Handler(r)
	op := h.served[pattern]
	if op.Method != r.Method {
		return api.Operation{}
	}
	return op
}

// canonical says whether the path is in its one form, without any escapes.
func canonical(r *http.Request) bool {
	return r.URL.EscapedPath() == r.URL.Path && path.Clean(r.URL.Path) == r.URL.Path
}
