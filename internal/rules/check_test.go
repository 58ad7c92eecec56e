package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheckJoinsEveryFaultAndStillReports(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Check(fstest.MapFS{
		ListFile:      {Data: []byte(header + "R001\tauthz\tErrors\t-\tIt holds.\tTry it.\n")},
		DoneFile:      {Data: []byte("authz\n")},
		"a_test.go":   {Data: []byte("package p\n\n// rule: R002\nfunc TestA(t *testing.T) {}\n")},
		"b/b_test.go": {Data: []byte("package p\n\n// rule: R1\nfunc TestB(t *testing.T) {}\n")},
	}, &out)
	for _, want := range []string{"claims R002, which is no rule", "no test proves R001", "b/b_test.go:3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	if !strings.HasPrefix(out.String(), "authz 0/1\n") {
		t.Errorf("got report %q, want one that starts with the area", out.String())
	}
}

func TestCheckNeedsItsFiles(t *testing.T) {
	t.Parallel()
	err := Check(fstest.MapFS{}, new(strings.Builder))
	for _, want := range []string{ListFile, DoneFile} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// TestThisRepository is what keeps `go test` and `make rules` of one mind.
func TestThisRepository(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := Check(os.DirFS(filepath.Join("..", "..")), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "/458\n") {
		t.Errorf("the report does not count 458 rules:\n%s", out.String())
	}
}
