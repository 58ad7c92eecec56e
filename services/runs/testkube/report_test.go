package testkube_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standin "hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/services/runs/testkube"
)

const (
	junit    = "data/artifacts/junit.xml"
	document = `<?xml version="1.0"?><testsuites tests="1"><testsuite name="shop"><testcase name="pays"/></testsuite></testsuites>`
)

func withReport(n int) standin.Execution {
	r := run(n)
	r.Artifacts = map[string][]byte{junit: []byte(document), "data/artifacts/report/index.html": []byte("<html>")}
	return r
}

// rule: R024, R349
func TestTheReportOfARunIsItsArtifact(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(withReport(0))
	var out bytes.Buffer
	if err := client(t, s).Report(t.Context(), "shop", run(0).ID, time.Time{}, &out); err != nil || out.String() != document {
		t.Errorf("%q, %v", &out, err)
	}
	requests := s.Requests()
	if last := requests[len(requests)-1]; last != "/v1/test-workflow-executions/"+run(0).ID+"/artifacts/data%2Fartifacts%2Fjunit.xml" {
		t.Errorf("what was read is %s", last)
	}
}

// Every report is passed on byte for byte, those too that no reader understands.
func TestRealReportsArePassedOnAsTheyAre(t *testing.T) {
	t.Parallel()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES is not set: CI has the real reports")
	}
	files, err := filepath.Glob(filepath.Join(cases, "junit", "*", "*.xml"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d reports, %v", len(files), err)
	}
	s := start(t)
	c := client(t, s)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := run(0)
		r.Artifacts = map[string][]byte{junit: content}
		s.Put(r)
		var out bytes.Buffer
		err = c.Report(t.Context(), "shop", r.ID, time.Time{}, &out)
		if strings.HasSuffix(file, "non-xml.xml") {
			if err == nil {
				t.Errorf("%s is no XML and was passed on", file)
			}
			continue
		}
		if err != nil || !bytes.Equal(out.Bytes(), content) {
			t.Errorf("%s: %d bytes of %d, %v", file, out.Len(), len(content), err)
		}
	}
}

// rule: R350
func TestAReportThatIsNotThisAppsIsNotFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	other, untagged, bare := withReport(1), withReport(2), run(3)
	other.Tags = map[string]string{"app": "payroll"}
	untagged.Tags = nil
	elsewhere := withReport(4)
	elsewhere.Artifacts = map[string][]byte{"data/artifacts/video.webm": []byte("x")}
	s.Put(withReport(0), other, untagged, bare, elsewhere)
	for name, tt := range map[string]struct {
		id   string
		want error
	}{
		"another app's":          {other.ID, testkube.ErrNotFound},
		"nobody's":               {untagged.ID, testkube.ErrNotFound},
		"no such run":            {"66ae0b1f9d3c4a5b6c7dffff", testkube.ErrNotFound},
		"by the name":            {run(0).Name, testkube.ErrNotFound},
		"without artifacts":      {bare.ID, testkube.ErrNoReport},
		"with others than those": {elsewhere.ID, testkube.ErrNoReport},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := client(t, s).Report(t.Context(), "shop", tt.id, time.Time{}, &out); !errors.Is(err, tt.want) || out.Len() != 0 {
				t.Errorf("%v, %d bytes", err, out.Len())
			}
		})
	}
}

// rule: R349
func TestNoOtherArtifactTakesThePlaceOfTheReport(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"artifacts/junit.xml", "junit.xml", "data/artifacts/junit.xml.bak", "data/artifacts/e2e/junit.xml", "../66ae0b1f9d3c4a5b6c7d0001/artifacts/junit.xml",
	} {
		s, r := start(t), run(0)
		r.Artifacts = map[string][]byte{name: []byte(document)}
		r.Reports = []string{name}
		s.Put(r)
		var out bytes.Buffer
		if err := client(t, s).Report(t.Context(), "shop", r.ID, time.Time{}, &out); !errors.Is(err, testkube.ErrNoReport) || out.Len() > 0 {
			t.Errorf("%s: %q, %v", name, &out, err)
		}
	}
}

func TestAReportThatCannotBeReadIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		part  standin.Part
		fault standin.Fault
	}{
		"the run":                    {standin.Detail, standin.Status(http.StatusInternalServerError)},
		"the run, by another answer": {standin.Detail, standin.Answer(`{"id":1}`)},
		"the run, by an empty one":   {standin.Detail, standin.Answer(`{}`)},
		"the run, by a way to none":  {standin.Detail, standin.Status(http.StatusNotFound)},
		"listed and not given":       {standin.Download, standin.Status(http.StatusInternalServerError)},
		"refused":                    {standin.Download, standin.Status(http.StatusForbidden)},
		"cut in the middle":          {standin.Download, standin.Cut(document[:60])},
		"a problem in place of it":   {standin.Download, standin.Answer(`{"title":"secret-of-testkube"}`)},
		"a page in place of it":      {standin.Download, standin.Answer("\n<!DOCTYPE html><p>secret-of-testkube")},
		"a page without its word":    {standin.Download, standin.Answer("<HTML>secret-of-testkube")},
		"nothing":                    {standin.Download, standin.Answer("")},
		"longer than any is":         {standin.Download, standin.Answer("<a>" + strings.Repeat("x", testkube.MaxReportBytes))},
		"a gateway between failed":   {standin.Download, standin.Status(http.StatusBadGateway)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Put(withReport(0))
			s.On(tt.part, tt.fault)
			var out bytes.Buffer
			err := client(t, s).Report(t.Context(), "shop", run(0).ID, time.Time{}, &out)
			if err == nil || errors.Is(err, testkube.ErrNoReport) || errors.Is(err, testkube.ErrNotFound) || strings.Contains(err.Error(), "secret-of-testkube") {
				t.Errorf("%v", err)
			}
		})
	}
	s := start(t)
	s.Put(run(0))
	s.On(standin.Artifacts, standin.Status(http.StatusInternalServerError))
	if err := client(t, s).Report(t.Context(), "shop", run(0).ID, time.Time{}, &bytes.Buffer{}); err == nil || errors.Is(err, testkube.ErrNoReport) {
		t.Errorf("when the artifacts cannot be listed: %v", err)
	}
}
