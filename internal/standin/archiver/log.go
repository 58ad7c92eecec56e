package archiver

import (
	"bytes"
	"fmt"

	"hangar.io/glidepath/internal/simulator/life"
)

// logOf is what the steps of a TaskRun have written, as the archive keeps it: each
// line behind the name of its step, an empty line between two steps. It is nil
// for one whose Pod was taken away before its log was read, which is what becomes
// of cancelled ones and of those that took too long.
func logOf(task *life.TaskRun) []byte {
	switch task.Status.Conditions.Succeeded().Reason {
	case life.ReasonTaskRunCancelled, life.ReasonTaskRunTimeout:
		return nil
	}
	var b bytes.Buffer
	for i, step := range task.Status.Steps {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s] + exec %s\n", step.Name, step.Name)
		if ended := step.Terminated; ended != nil && ended.ExitCode != 0 {
			fmt.Fprintf(&b, "[%s] %s\n[%s] exit status %d\n", step.Name, complaint(step.Name), step.Name, ended.ExitCode)
			continue
		}
		fmt.Fprintf(&b, "[%s] done\n", step.Name)
	}
	return b.Bytes()
}

// complaint is what a step of the sample pipelines writes when it fails: what a
// tool that does such work would say. Most of it is known to explainRun.
func complaint(step string) string {
	said := map[string]string{
		"clone":      "fatal: couldn't find remote ref refs/heads/boarding-pass",
		"restore":    "main.go:5:2: missing go.sum entry for module providing package example.com/boarding",
		"compile":    "main.go:17:9: undefined: boardingPass",
		"lint":       "✖ 2 problems (2 errors, 0 warnings)",
		"unit-tests": "--- FAIL: TestBoardingPassHasASeat (0.01s)",
		"build":      "error building image: parsing dockerfile: dockerfile parse error line 9: unknown instruction: COPPY",
		"push":       "unauthorized: authentication required",
		"sign":       "error: signing the digest: the key is not there",
		"check":      "error: change CHG0031415 is in state 'assess' - not approved or scheduled",
		"render":     "Error: template: app/templates/deployment.yaml:21:18: nil pointer evaluating interface {}.tag",
		"apply":      `error: deployment "app" exceeded its progress deadline`,
		"probe":      "curl: (7) Failed to connect to app port 8080: Connection refused",
		"provenance": "Error: no matching attestations: none of the attestations matched the predicate type",
		"policy":     "7 tests, 6 passed, 0 warnings, 1 failure, 0 exceptions",
		"open":       "gh: API rate limit exceeded for this installation (HTTP 403)",
	}
	if text, ok := said[step]; ok {
		return text
	}
	return step + " did not do what it was asked to"
}
