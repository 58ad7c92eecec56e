package docs

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

var (
	action       = regexp.MustCompile(`(?m)^\s*-?\s*uses:\s*(\S+)`)
	pinnedAction = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
)

// TestPublicCIRunsTheScriptOfEveryClone keeps the public workflow from becoming
// another set of checks, and from running code that somebody may move a tag to.
func TestPublicCIRunsTheScriptOfEveryClone(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(root, ".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflow: %v", err)
	}
	for _, name := range files {
		text := read(t, name)
		if !strings.Contains(text, " .ci/run\n") {
			t.Errorf("%s does not run .ci/run", name)
		}
		if !strings.Contains(text, "\npermissions: {}\n") {
			t.Errorf("%s: the token must have no rights but those a job names", name)
		}
		if strings.Contains(text, "secrets.") || strings.Contains(text, "pull_request_target") {
			t.Errorf("%s: a change of anybody's must not run beside a secret", name)
		}
		for _, match := range action.FindAllStringSubmatch(text, -1) {
			if !pinnedAction.MatchString(match[1]) {
				t.Errorf("%s: %s is not pinned by commit", name, match[1])
			}
		}
	}
}
