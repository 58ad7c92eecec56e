package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"hangar.io/glidepath/api/runsapi"
	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/testkube"
)

// tests is where the test runs are: *testkube.Client.
type tests interface {
	List(ctx context.Context, app string, since time.Time, limit int) ([]testkube.Test, error)
	Report(ctx context.Context, app, id string, since time.Time, w io.Writer) error
}

// testRow is a test run in a list.
type testRow struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Workflow   string            `json:"workflow,omitempty"`
	Status     string            `json:"status"`
	StatusNote string            `json:"statusNote,omitempty"`
	StartTime  time.Time         `json:"startTime,omitzero"`
	EndTime    time.Time         `json:"endTime,omitzero"`
	DurationMS int64             `json:"durationMs,omitempty"`
	Labels     map[string]string `json:"labels"`
}

// ListTests answers the test runs of an app, newest first. Those from before its
// namespace was made are another app's of the same name.
func (s *server) ListTests(w http.ResponseWriter, r *http.Request, app string, params runsapi.ListTestsParams) {
	limit, bad := testsLimit(params.Limit)
	s.testing(w, r, app, jsonBody, bad, func(ctx context.Context, since time.Time, w io.Writer) error {
		found, err := s.tests.List(ctx, app, since, limit)
		if err != nil {
			return err
		}
		return writeTests(w, found)
	})
}

func writeTests(w io.Writer, found []testkube.Test) error {
	rows := make([]testRow, len(found))
	for i, t := range found {
		rows[i] = testRow{
			ID: t.ID, Name: t.Name, Workflow: t.Workflow, Status: t.Status, StatusNote: t.StatusNote,
			StartTime: t.Start, EndTime: t.End, DurationMS: t.Duration.Milliseconds(), Labels: t.Labels,
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string][]testRow{"tests": rows})
}

// reportBody is a JUnit report as it is stored.
var reportBody = kind{contentType: "application/xml", maxBytes: testkube.MaxReportBytes}

// GetTestReport answers the JUnit report of one of the app's test runs, byte for
// byte.
func (s *server) GetTestReport(w http.ResponseWriter, r *http.Request, app, id string) {
	// XML can carry a page and its scripts. A browser that is led here shows it
	// as a document of nobody's.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.testing(w, r, app, reportBody, checkTest(id), func(ctx context.Context, since time.Time, w io.Writer) error {
		return s.tests.Report(ctx, app, id, since, w)
	})
}

// testing answers a call about the tests of an app; bad is what is wrong with its
// parameters. Nothing of it is kept: tests run on. It is whole before any of it is
// sent, and held from when it is written.
func (s *server) testing(w http.ResponseWriter, r *http.Request, app string, k kind, bad error, write func(ctx context.Context, since time.Time, w io.Writer) error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.wait)
	defer cancel()
	d, end, err := k.held(s.documents.sending, callerOf(r.Context()), func(w io.Writer) error {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
		since, err := s.namespaces.created(ctx, scope)
		if err != nil {
			return err
		}
		return write(ctx, since, w)
	})
	if err != nil {
		if errors.Is(err, cache.ErrBusy) {
			s.documents.unsent.WithLabelValues("refused").Inc()
		}
		refuse(w, r, explainTests(err))
		return
	}
	defer end()
	body, err := d.Open()
	if err != nil {
		refuse(w, r, explainTests(err))
		return
	}
	defer func() { _ = body.Close() }() // out of memory
	w.Header().Set("Content-Type", k.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(d.Len()))
	w.Header().Set("Cache-Control", "no-store")
	s.deliver(w, func(w http.ResponseWriter) error {
		_, err := io.Copy(w, body)
		return err
	})
}

// explainTests says to a caller what kept an answer about tests from it. What
// Testkube said stays in the logs.
func explainTests(err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	p := problem.New(problem.SourceFailed, "Testkube could not be read")
	switch {
	case errors.Is(err, testkube.ErrNotFound):
		p = problem.New(problem.NotFound, "no test run of this app has this id").WithHint("listTests gives the ids of an app's test runs")
	case errors.Is(err, testkube.ErrNoReport):
		p = problem.New(problem.NotFound, "the test run has no report").
			WithHint("a report is the artifact data/artifacts/junit.xml; a test run that is still running has none yet")
	case errors.Is(err, answer.ErrTooLarge):
		p = problem.New(problem.SourceFailed, fmt.Sprintf("the report is longer than %d MiB", testkube.MaxReportBytes>>20))
	case errors.Is(err, cache.ErrBusy):
		p = problem.New(problem.Busy, "this replica sends as much as it may")
	case errors.Is(err, context.DeadlineExceeded):
		p = problem.New(problem.SourceFailed, "Testkube did not answer in time")
	}
	return p.WithCause(err)
}
