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
			fmt.Fprintf(&b, "[%s] main.go:17:9: undefined: boardingPass\n[%s] exit status %d\n", step.Name, step.Name, ended.ExitCode)
			continue
		}
		fmt.Fprintf(&b, "[%s] done\n", step.Name)
	}
	return b.Bytes()
}
