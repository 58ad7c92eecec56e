package explain

import (
	"cmp"
	"strings"

	"hangar.io/glidepath/services/runs/tekton"
)

// failedStep gives the first step that exited non-zero, "" when none did. One
// whose failing its author had declared harmless (onError: continue) is none but
// where there is no other.
func failedStep(tr *tekton.Object) string {
	harmless := ""
	for _, s := range tr.Status.Steps {
		switch {
		case s.Terminated == nil || s.Terminated.ExitCode == 0:
		case s.TerminationReason != "Continued":
			return stepName(s)
		case harmless == "":
			harmless = stepName(s)
		}
	}
	return harmless
}

func stepName(s tekton.Step) string {
	return cmp.Or(s.Name, strings.TrimPrefix(s.Container, "step-"))
}

func steps(tr *tekton.Object) []string {
	var names []string
	for _, s := range tr.Status.Steps {
		names = append(names, stepName(s))
	}
	return names
}

// byStart puts those that began first first, and those that never began last.
func byStart(a, b *tekton.Object) int {
	if never := a.Status.Started.IsZero(); never != b.Status.Started.IsZero() {
		if never {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Status.Started.Compare(b.Status.Started.Time), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
}
