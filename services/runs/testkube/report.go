package testkube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hangar.io/glidepath/internal/upstream"
)

const (
	// reportPath is where the templates of Glidepath leave a report. It is one
	// segment of a URL, which Testkube unescapes twice: nothing in it minds.
	reportPath = "data/artifacts/junit.xml"
	// MaxReportBytes is the longest report that is handed out.
	MaxReportBytes = 32 << 20
	maxArtifacts   = 4 << 20 // bytes of the list of them
)

// Report writes the JUnit report of an execution of the app, byte for byte. One
// from before since is not found, as in a list. An error may come after a part
// of it was written: whoever hands it on must not do so before the end.
func (c *Client) Report(ctx context.Context, app, id string, since time.Time, w io.Writer) error {
	e, err := c.execution(ctx, id, attempts)
	switch {
	case absent(err):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("reading the execution: %w", err)
	case !e.of(app, id) || e.ScheduledAt.Before(since):
		// Testkube finds an execution by its name too, and names are used again.
		return ErrNotFound
	}
	answer, err := c.get(ctx, request{kindReport, executionPath(id) + "/artifacts/" + url.PathEscape(reportPath), nil, attempts})
	if answered, ok := errors.AsType[*statusError](err); ok && (answered.status == http.StatusNotFound || answered.status == http.StatusInternalServerError) {
		// Testkube says 500 for an artifact that is not there as for one that
		// it cannot read; its list tells the two apart.
		return c.missing(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("reading the report: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // what was read is judged by itself
	return copyReport(w, answer)
}

// missing says why a report was not given. No other artifact takes its place,
// whatever it looks like.
func (c *Client) missing(ctx context.Context, id string) error {
	artifacts, err := readJSON[[]artifact](ctx, c, request{kindArtifacts, executionPath(id) + "/artifacts", nil, attempts}, maxArtifacts)
	if err != nil {
		return fmt.Errorf("listing the artifacts: %w", err)
	}
	if slices.Contains(*artifacts, artifact{reportPath}) {
		return errors.New("testkube lists the report and does not give it")
	}
	return ErrNoReport
}

type artifact struct {
	Name string `json:"name"`
}

func executionPath(id string) string { return executionsPath + "/" + url.PathEscape(id) }

// copyReport passes XML on, whatever it says. Testkube's word for the type of
// an artifact is the same for all of them.
func copyReport(w io.Writer, answer *upstream.Answer) error {
	limited := &io.LimitedReader{R: answer.Body, N: MaxReportBytes + 1}
	from := bufio.NewReader(limited)
	start, err := from.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the report: %w", err)
	}
	if !looksXML(start) {
		answer.Reject()
		return errors.New("what testkube has for a report is no XML")
	}
	_, err = io.Copy(w, from)
	switch {
	case err != nil:
		return fmt.Errorf("reading the report: %w", err)
	case limited.N <= 0:
		return fmt.Errorf("the report is longer than %d bytes", MaxReportBytes)
	}
	return nil
}

const sniffBytes = 512

// looksXML says whether a document begins as XML does, in UTF-8 or UTF-16, and
// not as a page.
func looksXML(start []byte) bool {
	start = bytes.TrimPrefix(start, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(start, []byte("\xff\xfe<\x00")) || bytes.HasPrefix(start, []byte("\xfe\xff\x00<")) {
		return true
	}
	start = bytes.ToLower(bytes.TrimLeft(start, " \t\r\n"))
	return bytes.HasPrefix(start, []byte("<")) && !bytes.HasPrefix(start, []byte("<html")) && !bytes.HasPrefix(start, []byte("<!doctype html"))
}
