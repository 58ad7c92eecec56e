package explain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/services/runs/explain"
)

// contractFailures are the known failures as getContract serves them.
func contractFailures(t *testing.T) []map[string]any {
	t.Helper()
	var c struct{ KnownFailures []map[string]any }
	if err := json.Unmarshal(api.Contract(), &c); err != nil {
		t.Fatal(err)
	}
	return c.KnownFailures
}

// Each known failure has a log of its own in testdata: what a tool or Kubernetes
// prints when it happens. The line that begins with >> is the one that says it.
func TestEveryKnownFailureIsRecognizedByWhatItsToolPrints(t *testing.T) {
	t.Parallel()
	c := contract(t)
	failures := contractFailures(t)
	if len(failures) < 25 {
		t.Errorf("the contract knows %d failures", len(failures))
	}
	for _, f := range failures {
		id := f["id"].(string)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata", "logs", id+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			var log, says string
			for line := range strings.Lines(string(raw)) {
				if rest, ok := strings.CutPrefix(line, ">>"); ok {
					line, says = rest, strings.TrimSuffix(rest, "\n")
				}
				log += line
			}
			entry := explainLog(t, c, log)
			if entry.KnownFailure == nil || entry.KnownFailure.ID != id || entry.Evidence != says {
				t.Fatalf("%+v by the line %q, want %s by the line %q, which is the one behind >> in its log", entry.KnownFailure, entry.Evidence, id, says)
			}
			if entry.KnownFailure.Hint != f["hint"] || (entry.KnownFailure.Field != "") != (f["field"] != nil) {
				t.Errorf("%+v, in the contract %v", entry.KnownFailure, f)
			}
			// The same out of a condition, as when there is no log.
			entries, err := c.Explain(t.Context(), archived(t, taskRun("run-build", "build=0").with("False", says)), logsOf(nil))
			if err != nil || entries[0].KnownFailure == nil || entries[0].KnownFailure.ID != id || entries[0].Log != explain.LogMissing {
				t.Errorf("by its condition: %+v, %v", entries, err)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "logs", "*.txt"))
	if err != nil || len(files) != len(failures) {
		t.Errorf("%d logs for %d known failures, %v", len(files), len(failures), err)
	}
}

// realLog is what a real log shows and the start of the line that says so; no id
// means that it shows nothing that has a name.
type realLog struct{ id, evidence string }

func realLogs() map[string]realLog {
	return map[string]realLog{
		// What was wrong with these is known: the collection says it.
		"rpm-builds/03588217/builder-live.log": {"SystemPackageNotFound", "No match for argument: pkgconfig(mjpegtools) >= 2.0.0"},
		"rpm-builds/0bcfc3d6/builder-live.log": {"SystemPackageNotFound", "  - nothing provides clang = 13.0.0 needed by clang-rpm-macros"},
		"rpm-builds/3b668dda/root.log":         {"SystemPackageNotFound", "DEBUG util.py:459:  Problem: nothing provides requested (python3dist(botocore) < 1.38"},
		"rpm-builds/89460881/builder-live.log": {"DownloadNotFound", "curl: (22) The requested URL returned error: 404"},
		"rpm-builds/bd0afcc7/builder-live.log": {"TestsFailed", "116 runs, 259 assertions, 0 failures, 1 errors, 0 skips"},
		"rpm-builds/f91ba960/builder-live.log": {"SourceFileMissing", "error: Bad file: /builddir/build/SOURCES/gnome-shell-notify-gnome-session.patch"},

		"analysis-model/gcc4.txt":                                    {"NativeCompilationFailed", "/u1/drjohn/bfdist/packages/RegrTest/V00-03-01/RgtAddressLineScan.cc:73: error: "},
		"analysis-model/gnuMakeGcc.txt":                              {"NativeCompilationFailed", "foo.cc:4:39: error: foo.h: No such file or directory"},
		"analysis-model/mixed-clang-lld-errors.log":                  {"NativeCompilationFailed", "main.cpp:42:10: error: use of undeclared identifier 'foo'"},
		"analysis-model/gradle.java.log":                             {"JavaCompilationFailed", "[java] /var/lib/jenkins/workspace/webhooks/src/main/java/File.java:59: error: ';' expected"},
		"analysis-model/javac-errors.txt":                            {"JavaCompilationFailed", "[ERROR] /home/jenkins/workspace/nings-plugin"},
		"analysis-model/kotlin-gradle-error.txt":                     {"JavaCompilationFailed", "e: /project/app/src/main/java/ui/Activity.kt: (214, 35): Unresolved reference: feth"},
		"analysis-model/maven-console.txt":                           {"JavaCompilationFailed", "11:02:14  [ERROR] COMPILATION ERROR : "},
		"analysis-model/maven-enforcer.log":                          {"MavenRuleFailed", "[WARNING] Rule 4: org.apache.maven.plugins.enforcer.RequireUpperBoundDeps failed with message:"},
		"analysis-model/kernel.log":                                  {"ProgramPanicked", "Segmentation fault"},
		"analysis-model/mypy.txt":                                    {"LintFailed", "fs/cs/backend/log.py:16: error: "},
		"analysis-model/flake8.txt":                                  {"LintFailed", "myproject/__init__.py:7: [F401] 'db' imported but unused"},
		"analysis-model/pylint_parseable.txt":                        {"LintFailed", ""},
		"analysis-model/rubocop.log":                                 {"LintFailed", "33 files inspected, 2 offenses detected"},
		"docs-cosign/verifying__verify-L153.txt":                     {"SignatureNotVerified", "error: no matching claims:"},
		"docs-kubernetes/3857-rro-mounts__README-L940.txt":           {"ManifestInvalid", "strict decoding error: unknown field"},
		"docs-trivy/configuration__filtering-L200.txt":               {"VulnerabilitiesFound", "Total: 527 (UNKNOWN: 0, LOW: 276, MEDIUM: 83, HIGH: 158, CRITICAL: 10)"},
		"docs-trivy/configuration__filtering-L315.txt":               {"", ""}, // Total: 0
		"gotest/cmd__go-test-json-flaky-rerun.out":                   {"TestsFailed", ""},
		"gotest/cmd__go-test-missing-run-events.out":                 {"TestsFailed", ""},
		"gotest/cmd__input__go-test-json-panic-race-1.out":           {"TestsTimedOut", ""},
		"gotest/testjson__input__go-test-json-missing-test-fail.out": {"ProgramPanicked", ""},
		"konflux-conforma/mockConformaJSON.json":                     {"PolicyViolated", `   "violations": [`},

		// Successes, warnings and what no tool of CI prints.
		"analysis-model/bluepearl.log":                          {"", ""},
		"analysis-model/cargo-clippy-2018.txt":                  {"", ""},
		"analysis-model/javac.log":                              {"", ""},
		"analysis-model/javadoc-in-java.log":                    {"", ""},
		"analysis-model/maven-goals.log":                        {"", ""},
		"derived/crlf.txt":                                      {"", ""},
		"derived/invalid-utf8.txt":                              {"", ""},
		"derived/one-line-1MiB.txt":                             {"", ""},
		"gitlab-trace/sample_trace.txt":                         {"", ""},
		"istio/ingress.log":                                     {"", ""},
		"rpm-builds/3b668dda/build.log":                         {"", ""},
		"tekton-dashboard-timestamps_log_levels.txt":            {"", ""},
		"terminal/buildah-build.raw.txt":                        {"", ""},
		"terminal/huge-line.raw.txt":                            {"", ""},
		"terminal/npm.raw.txt":                                  {"", ""},
		"gotest/testjson__go-test-json-with-nonjson-stdout.out": {"", ""},
	}
}

func TestRealLogs(t *testing.T) {
	t.Parallel()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES is not set: CI has the real logs")
	}
	c := contract(t)
	for name, want := range realLogs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := os.ReadFile(filepath.Join(cases, "logs", name))
			if err != nil {
				t.Fatal(err)
			}
			entry := explainLog(t, c, string(log))
			id := ""
			if entry.KnownFailure != nil {
				id = entry.KnownFailure.ID
			}
			if id != want.id || !strings.HasPrefix(entry.Evidence, want.evidence) {
				t.Errorf("%s: %.200s", id, entry.Evidence)
			}
			if strings.ContainsAny(entry.Evidence, "\x1b\x00\r") {
				t.Errorf("it holds what moves a terminal: %q", entry.Evidence)
			}
		})
	}
}
