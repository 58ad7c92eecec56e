package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/results"
)

// rule: R011
func TestALogThatIsTooLargeToBeKeptComesWholeOrIsSeenToBeCut(t *testing.T) {
	const run = 71_000
	namespace, at := fleet.NamespaceOf(fleet.AppSkyMarshall), time.Now()
	archiveRuns(t, namespace, run, 1, at, time.Second)
	archiveTask(t, namespace, run, at)
	text := bytes.Repeat([]byte("[test] a line of a log that has many of them\n"), 1_500_000)
	put := func(text []byte) { gw.Results.PutLog(namespace, archivedUID(run), archivedUID(run+500), text) }
	put(text)
	t.Cleanup(func() { put(nil) })
	read := func() (header http.Header, size int64, err error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gw.URL+"/v1/apps/"+fleet.AppSkyMarshall+"/runs/"+archivedUID(run)+"/logs/unit", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		as(fleet.CallerReader)(req)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("got %d", resp.StatusCode)
		}
		size, err = io.Copy(io.Discard, resp.Body)
		return resp.Header, size, err
	}
	for range 2 {
		header, size, err := read()
		// Results itself adds some newlines.
		if err != nil || size < int64(len(text)) || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") || header.Get("ETag") != "" {
			t.Errorf("%d bytes of %d, %v; %v", size, len(text), err, header)
		}
	}
	gw.Results.SetFaults(results.Fault{Path: "/logs/" + archivedUID(run+500), Cut: len(text) / 2})
	t.Cleanup(func() { gw.Results.SetFaults() })
	if _, size, err := read(); err == nil {
		t.Errorf("a log that breaks off looks whole after %d bytes", size)
	}
}
