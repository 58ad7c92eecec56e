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
	"strings"
	"time"
)

const (
	// reportPath is where the templates of Glidepath leave a report.
	reportPath = "data/artifacts/junit.xml"
	// MaxReportBytes is the longest report that is handed out.
	MaxReportBytes = 32 << 20
	maxArtifacts   = 4 << 20 // bytes of the list of them
	kindJUnit      = "junit"
)

// Report writes the JUnit report of an execution of the app, byte for byte. One
// from before since is not found, as in a list. An error may come after a part
// of it was written: whoever hands it on must not do so before the end.
func (c *Client) Report(ctx context.Context, app, id string, since time.Time, w io.Writer) error {
	e, err := c.execution(ctx, id)
	switch {
	case absent(err):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("reading the execution: %w", err)
	case !e.of(app, id) || e.ScheduledAt.Before(since):
		// Testkube finds an execution by its name too, and names are used again.
		return ErrNotFound
	}
	body, err := c.artifact(ctx, id, reportPath)
	if answered, ok := errors.AsType[*statusError](err); ok && (answered.status == http.StatusNotFound || answered.status == http.StatusInternalServerError) {
		// Testkube says 500 for an artifact that is not there as for one that
		// it cannot read; its list tells the two apart.
		body, err = c.listed(ctx, e)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	return copyReport(w, body)
}

// listed reads the report from where the execution's artifacts are listed: a
// step with another working directory has the same file under another name.
func (c *Client) listed(ctx context.Context, e *execution) (io.ReadCloser, error) {
	var artifacts []struct {
		Name string `json:"name"`
	}
	if err := c.getJSON(ctx, executionPath(e.ID)+"/artifacts", nil, maxArtifacts, &artifacts); err != nil {
		return nil, fmt.Errorf("listing the artifacts: %w", err)
	}
	names := make([]string, len(artifacts))
	for i, a := range artifacts {
		names[i] = a.Name
	}
	if slices.Contains(names, reportPath) {
		return nil, errors.New("testkube lists the report and does not give it")
	}
	for _, r := range e.Reports {
		if r.Kind == kindJUnit && slices.Contains(names, r.File) && !climbs(r.File) {
			return c.artifact(ctx, e.ID, r.File)
		}
	}
	return nil, ErrNoReport
}

// climbs says whether a path leads out of where it begins: a workflow names its
// artifacts, and what Testkube or its store makes of such a name is not known.
func climbs(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

func (c *Client) artifact(ctx context.Context, id, name string) (io.ReadCloser, error) {
	body, err := c.get(ctx, executionPath(id)+"/artifacts/"+escapeName(name), nil)
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	return body, nil
}

func executionPath(id string) string { return executionsPath + "/" + url.PathEscape(id) }

// escapeName gives an artifact's path as one segment. Testkube unescapes it
// twice, so what means something to either is escaped twice; a slash is none to
// the second.
func escapeName(name string) string {
	var out strings.Builder
	for i := range len(name) {
		switch b := name[i]; {
		case b == '/':
			out.WriteString("%2F")
		case b == '-' || b == '_' || b == '.' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z':
			out.WriteByte(b)
		default:
			fmt.Fprintf(&out, "%%25%02X", b)
		}
	}
	return out.String()
}

// copyReport passes XML on, whatever it says. Testkube's word for the type of
// an artifact is the same for all of them.
func copyReport(w io.Writer, body io.Reader) error {
	limited := &io.LimitedReader{R: body, N: MaxReportBytes + 1}
	from := bufio.NewReader(limited)
	start, err := from.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the report: %w", err)
	}
	if !looksXML(start) {
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
