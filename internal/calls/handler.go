package calls

import (
	"net/http"
	"path"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// HandlerConfig says what a backend serves. All of it is required.
type HandlerConfig struct {
	// Backend is its name in the contract and in identities.
	Backend string
	// Routes registers its operations.
	Routes func(*http.ServeMux)
	// Verifier takes the identities of calls.
	Verifier *identity.Verifier
	// Ready says why the process should get no calls yet.
	Ready   func() error
	Tracing *telemetry.Tracing
}

// handler sorts requests: operations, which need an identity, the probes, and
// all the rest, which is not found.
type handler struct {
	operations *http.ServeMux
	guarded    http.Handler
	probes     *http.ServeMux
	served     map[string]api.Operation // by pattern of the mux
}

// NewHandler serves the operations of a backend to calls whose identity is for
// them, and the probes /healthz and /readyz to everybody.
func NewHandler(cfg HandlerConfig) http.Handler {
	h := &handler{operations: http.NewServeMux(), probes: http.NewServeMux(), served: map[string]api.Operation{}}
	for _, op := range api.Operations() {
		if op.Backend == cfg.Backend && !op.Planned {
			h.served[op.Method+" "+op.Path] = op
		}
	}
	cfg.Routes(h.operations)
	h.guarded = identity.Require(cfg.Verifier, func(r *http.Request) string { return h.operation(r).ID }, Traced(cfg.Tracing, http.HandlerFunc(h.serve)))
	lifecycle.Probes(h.probes, cfg.Ready)
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
	if err := CheckQuery(h.operation(r), r); err != nil {
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
