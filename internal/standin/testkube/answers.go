package testkube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

const defaultPageSize = 100

// routes match the undecoded path: an artifact's name is one segment of it.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	const one = "GET /v1/test-workflow-executions/{id}"
	mux.HandleFunc("GET /v1/test-workflow-executions", s.about(List, s.list))
	mux.HandleFunc(one, s.about(Detail, s.detail))
	mux.HandleFunc(one+"/artifacts", s.about(Artifacts, s.artifacts))
	mux.HandleFunc(one+"/artifacts/{name}", s.about(Download, s.download))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot "+r.Method+" "+r.URL.Path, http.StatusNotFound)
	})
	return mux
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, err := strconv.Atoi(query.Get("pageSize"))
	if err != nil || size <= 0 {
		size = defaultPageSize
	}
	page, err := strconv.Atoi(query.Get("page"))
	if err != nil || page < 0 {
		page = 0
	}
	all := s.newest(func(Execution) bool { return true })
	found := s.newest(tagged(query.Get("tagSelector")))
	rows := []any{}
	for _, e := range found[min(page*size, len(found)):min((page+1)*size, len(found))] {
		rows = append(rows, e.summary())
	}
	// Neither the numbers by status nor the rest of totals can be relied upon.
	answer(w, map[string]any{"totals": map[string]any{"results": len(all)}, "filtered": map[string]any{"results": len(found)}, "results": rows})
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) {
	e, ok := s.find(r.PathValue("id"))
	if !ok {
		absent(w)
		return
	}
	answer(w, e.full())
}

func (s *Server) artifacts(w http.ResponseWriter, r *http.Request) {
	e, ok := s.find(r.PathValue("id"))
	if !ok {
		absent(w)
		return
	}
	var names []string
	for name := range e.Artifacts {
		names = append(names, name)
	}
	slices.Sort(names)
	var rows []any // null when there are none
	for _, name := range names {
		rows = append(rows, map[string]any{"name": name, "size": len(e.Artifacts[name])})
	}
	answer(w, rows)
}

func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	e, ok := s.find(r.PathValue("id"))
	if !ok {
		absent(w)
		return
	}
	// The mux has unescaped the name once, by the rules of a path; Testkube's framework goes by those of a query.
	name, err := url.QueryUnescape(r.PathValue("name"))
	content, ok := e.Artifacts[name]
	if err != nil || !ok {
		refuse(w, http.StatusInternalServerError, "failed to download: The specified key does not exist.")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8") // whatever it is
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content)
}

// summary is a row of a list.
func (e Execution) summary() map[string]any {
	row := map[string]any{
		"id": e.ID, "groupId": e.ID, "runnerId": "local", "name": e.Name, "number": 1,
		"scheduledAt": e.Scheduled.UTC(), "statusAt": e.Finished.UTC(), "result": e.result(),
		"workflow":       map[string]any{"name": e.Workflow, "namespace": "testkube", "labels": e.Labels},
		"runningContext": map[string]any{"interface": map[string]any{"type": "api"}},
		"reports":        e.reports(),
	}
	if len(e.Tags) > 0 {
		row["tags"] = e.Tags
	}
	return row
}

// full is one execution with its steps and the workflow as it was.
func (e Execution) full() map[string]any {
	initialization := e.Initialization
	if initialization == "" {
		initialization = "passed"
	}
	signature, steps := []any{}, map[string]any{}
	for _, step := range e.Steps {
		signature = append(signature, map[string]any{"ref": step.Ref, "category": "Run shell command"})
		steps[step.Ref] = map[string]any{"status": step.Status, "startedAt": e.Started.UTC(), "finishedAt": e.Finished.UTC()}
	}
	all := e.summary()
	result := e.result()
	result["initialization"], result["steps"] = map[string]any{"status": initialization}, steps
	workflow := map[string]any{
		"name": e.Workflow, "namespace": "testkube", "labels": e.Labels,
		"spec": map[string]any{"steps": []any{map[string]any{"shell": "npx playwright test"}}},
	}
	all["namespace"], all["result"], all["signature"], all["output"] = "testkube", result, signature, []any{}
	all["workflow"], all["resolvedWorkflow"] = workflow, workflow
	return all
}

func (e Execution) result() map[string]any {
	result := map[string]any{
		"status": e.Status, "predictedStatus": e.Status, "queuedAt": e.Scheduled.UTC(),
		"startedAt": e.Started.UTC(), "finishedAt": e.Finished.UTC(), "pausedMs": 0,
	}
	if !e.Started.IsZero() && !e.Finished.IsZero() {
		result["duration"] = e.Finished.Sub(e.Started).String()
		result["durationMs"] = e.Finished.Sub(e.Started).Milliseconds()
		result["totalDurationMs"] = e.Finished.Sub(e.Scheduled).Milliseconds()
	}
	return result
}

func (e Execution) reports() []any {
	var reports []any
	for _, file := range e.Reports {
		reports = append(reports, map[string]any{"ref": "run", "kind": "junit", "file": file, "summary": map[string]any{"tests": 1, "passed": 1}})
	}
	return reports
}

func absent(w http.ResponseWriter) {
	refuse(w, http.StatusNotFound, "get execution: client not found: mongo: no documents in result")
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Status has a part answer with a status and a body of no form.
func Status(status int) Fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, fmt.Sprintf("secret-of-testkube: %d", status), status)
		return true
	}
}

// Answer has a part answer 200 with these bytes.
func Answer(body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte(body))
		return true
	}
}

// Cut has a part answer 200, promise more than it sends, and break the connection.
func Cut(start string) Fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", strconv.Itoa(len(start)+100))
		_, _ = w.Write([]byte(start))
		_ = http.NewResponseController(w).Flush()
		loopback.Abort()
		return true
	}
}

// Slow has a part answer after a time, or not when the caller has left.
func Slow(by time.Duration) Fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		return !loopback.Pause(r.Context(), by)
	}
}
