package results

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
)

const basePath = "/apis/results.tekton.dev/v1alpha2/parents/"

// The gRPC codes that are answered.
const (
	codeInvalid         = 3
	codeNotFound        = 5
	codeExhausted       = 8
	codeInternal        = 13
	codeUnauthenticated = 16
)

// refusal is an answer other than 200.
type refusal struct {
	status, code int
	message      string
}

// Error is the message.
func (r *refusal) Error() string { return r.message }

func invalid(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: codeInvalid, message: message}
}

func notFound(message string) *refusal {
	return &refusal{status: http.StatusNotFound, code: codeNotFound, message: message}
}

var errUnrouted = notFound("Not Found")

// ServeHTTP remembers the request and answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := parse(r.URL.Path)
	req := Request{URI: r.RequestURI, Parent: target.parent, Kind: target.kind, Filter: r.URL.Query().Get("filter"), Header: r.Header.Clone()}
	s.remember(req)
	fault := s.meet(req)
	w, answered := fault.before(w, r)
	if answered {
		return
	}
	var err error
	switch {
	case s.cfg.Token != "" && r.Header.Get("Authorization") == "":
		err = &refusal{http.StatusUnauthorized, codeUnauthenticated, "unable to find token"}
	case s.cfg.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.cfg.Token:
		err = &refusal{http.StatusUnauthorized, codeUnauthenticated, "permission denied"}
	default:
		err = s.route(w, r, target, fault)
	}
	if err != nil {
		refuse(w, err, target.kind == kindLogs && target.name != "")
	}
}

func refuse(w http.ResponseWriter, err error, wrapped bool) {
	answer, ok := errors.AsType[*refusal](err)
	if !ok {
		answer = &refusal{http.StatusInternalServerError, codeInternal, err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", answer.message)
	}
	w.WriteHeader(answer.status)
	var body any = map[string]any{"code": answer.code, "message": answer.message}
	if wrapped && answer != errUnrouted {
		body = map[string]any{"error": body}
	}
	_ = json.NewEncoder(w).Encode(body) // a client that left reads nothing
}

// Kinds of what is asked for.
const (
	kindResults = "results"
	kindRecords = "records"
	kindLogs    = "logs"
	kindSummary = "summary"
)

// target is what a path names. one says that it is a thing rather than a list.
type target struct {
	parent, result, kind, name string
	one                        bool
}

// parse reads a path; kind is empty for one that is not served.
func parse(path string) target {
	rest, ok := strings.CutPrefix(path, basePath)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 || parts[1] != kindResults {
		return target{}
	}
	t := target{parent: parts[0], kind: kindResults}
	if len(parts) > 2 {
		t.result, t.one = parts[2], true
	}
	if len(parts) > 3 {
		t.kind, t.one = parts[3], false
	}
	if len(parts) > 4 {
		t.name, t.one = parts[4], true
	}
	switch {
	case len(parts) == 5 && t.kind == kindRecords && t.name == kindSummary:
		return target{parent: t.parent, result: t.result, kind: kindSummary}
	case len(parts) <= 3, len(parts) <= 5 && (t.kind == kindRecords || t.kind == kindLogs):
		return t
	default:
		return target{}
	}
}

var (
	resultName = regexp.MustCompile(`^[a-z0-9_-]{1,63}/results/[a-z0-9_-]{1,63}$`)
	recordName = regexp.MustCompile(`^[a-z0-9_-]{1,63}/results/[a-z0-9_-]{1,63}/(records|logs)/[a-z0-9_-]{1,63}$`)
)

// check refuses names that cannot be one.
func (t target) check() error {
	switch {
	case t.kind == kindResults && t.one && !resultName.MatchString(t.parent+"/results/"+t.result):
		return invalid("rpc error: code = InvalidArgument desc = name must match (^[a-z0-9_-]{1,63})/results/([a-z0-9_-]{1,63}$)")
	case t.kind != kindResults && t.one && !recordName.MatchString(t.parent+"/results/"+t.result+"/"+t.kind+"/"+t.name):
		return invalid("rpc error: code = InvalidArgument desc = name must match (^[a-z0-9_-]{1,63})/results/([a-z0-9_-]{1,63})/" + t.kind + "/([a-z0-9_-]{1,63}$)")
	}
	return nil
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, t target, f Fault) error {
	if t.kind == "" || (t.kind == kindLogs && (s.cfg.Logs == NoLogs || (s.cfg.Logs == PluginLogs && !t.one))) {
		return errUnrouted
	}
	if err := t.check(); err != nil {
		return err
	}
	switch {
	case t.kind == kindLogs && t.one:
		if err := s.serveLog(w, t); err != nil {
			return err
		}
		_, _ = io.WriteString(w, f.Append) // a client that left reads nothing
		return nil
	case t.one:
		return s.serveOne(w, t)
	case t.kind == kindSummary:
		return s.serveSummary(w, r, t)
	default:
		return s.serveList(w, r, t, f)
	}
}

func (s *Server) serveOne(w http.ResponseWriter, t target) error {
	s.store.mu.Lock()
	table := s.store.records[t.parent+"/"+t.result]
	if t.kind == kindResults {
		table = s.store.results[t.parent]
	}
	var found *row
	if table != nil {
		found = table.byName[(&row{parent: t.parent, result: t.result, name: t.name}).fullName(kindRecords)]
	}
	s.store.mu.Unlock()
	if found == nil {
		return notFound("record not found")
	}
	if t.kind == kindResults {
		return s.write(w, s.dialect(found.resultJSON()))
	}
	return s.write(w, s.dialect(found.recordJSON(t.kind, nil)))
}

func (s *Server) write(w http.ResponseWriter, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // a client that left reads nothing
	return nil
}
