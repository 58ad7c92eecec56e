package report_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/test/report"
)

const sample = `package sample

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	fmt.Println("the package says something")
	os.Exit(m.Run())
}

func TestGood(t *testing.T) { t.Log("nobody wants to read this") }

func TestSkipped(t *testing.T) { t.Skip("nothing to try it on") }

func TestBad(t *testing.T) {
	t.Log("before")
	t.Run("bad", func(t *testing.T) {
		t.Parallel()
		t.Error("wrong")
	})
	t.Run("good", func(t *testing.T) {
		t.Parallel()
		t.Log("nor this")
	})
}
`

// events runs `go test -json` on a module of one package with this test file.
func events(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module sample\n\ngo 1.27\n", "sample_test.go": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-vet=off", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// printed is what is printed of events, without times.
func printed(t *testing.T, events string, slowest int) string {
	t.Helper()
	var b strings.Builder
	if err := report.Print(strings.NewReader(events), &b, slowest); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\d+\.\d+ ?s`).ReplaceAllString(b.String(), "TIME")
}

func TestOfAFailedPackageTheFailuresArePrinted(t *testing.T) {
	t.Parallel()
	const want = `--- FAIL: TestBad (TIME)
    sample_test.go:19: before
    --- FAIL: TestBad/bad (TIME)
        sample_test.go:22: wrong
the package says something
FAIL
FAIL	sample	TIME
skipped:
  sample TestSkipped: sample_test.go:16: nothing to try it on
`
	got, _, _ := strings.Cut(printed(t, events(t, sample), 10), "slowest tests:\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOfAPackageThatDiesTheRunningTestIsPrinted(t *testing.T) {
	t.Parallel()
	got := printed(t, events(t, strings.Replace(sample, `t.Error("wrong")`, `panic("gone")`, 1)), 10)
	for _, want := range []string{"panic: gone", "FAIL\tsample\t"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

func TestWhyAPackageDoesNotBuildIsPrinted(t *testing.T) {
	t.Parallel()
	got := printed(t, events(t, sample+"\nvar x int = nothing\n"), 10)
	for _, want := range []string{"undefined: nothing", "FAIL\tsample [build failed]"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

func TestTheSlowestTestsAreNamedWithoutTheirSubtests(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 5 {
		fmt.Fprintf(&b, `{"Action":"pass","Package":"p","Test":"Test%d/part","Elapsed":%d}`+"\n", i, i)
		fmt.Fprintf(&b, `{"Action":"pass","Package":"p","Test":"Test%d","Elapsed":%d.26}`+"\n", i, i)
	}
	b.WriteString(`{"Action":"output","Package":"p","Output":"ok  \tp\t9s\n"}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":9}` + "\n")
	var got strings.Builder
	if err := report.Print(strings.NewReader(b.String()), &got, 2); err != nil {
		t.Fatal(err)
	}
	const want = "ok  \tp\t9s\nslowest tests:\n     4.3 s  p Test4\n     3.3 s  p Test3\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestATestProgramThatRanAloneIsSaidToHavePassedOrFailed(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"pass": "ok  \tp\tTIME\n", "fail": "FAIL\tp\tTIME\n"} {
		if got := printed(t, `{"Action":"`+action+`","Package":"p","Elapsed":9.5}`+"\n", 10); got != want {
			t.Errorf("%s: got %q", action, got)
		}
	}
}

func TestWhatIsNoEventIsPrintedAsItIs(t *testing.T) {
	t.Parallel()
	const text = "go: downloading something\n{}\n"
	if got := printed(t, text, 10); got != text {
		t.Errorf("got %q", got)
	}
}
