package life

import (
	"fmt"
	"slices"
)

// parents names the tasks that t waits for: those it says it runs after and those whose results it uses.
func parents(t PipelineTask) []string {
	names := slices.Clone(t.RunAfter)
	for _, p := range t.Params {
		names = append(names, resultTasks(p.Value)...)
	}
	for _, w := range t.When {
		names = append(names, resultTasks(w.Input)...)
	}
	return names
}

// checkGraph refuses a pipeline whose tasks wait for each other, for tasks that do not exist, or that share a name.
func checkGraph(spec PipelineSpec) error {
	names := map[string]bool{}
	for _, t := range slices.Concat(spec.Tasks, spec.Finally) {
		if names[t.Name] {
			return fmt.Errorf("duplicate pipeline task %q", t.Name)
		}
		names[t.Name] = true
	}
	waiting := map[string][]string{}
	for _, t := range spec.Tasks {
		waiting[t.Name] = parents(t)
		for _, parent := range waiting[t.Name] {
			if !slices.ContainsFunc(spec.Tasks, func(p PipelineTask) bool { return p.Name == parent }) {
				return fmt.Errorf("task %s depends on %s but %s wasn't present in Pipeline", t.Name, parent, parent)
			}
		}
	}
	return checkCycles(spec.Tasks, waiting)
}

// checkCycles takes away, again and again, the tasks that wait for nothing; what remains waits for itself.
func checkCycles(tasks []PipelineTask, waiting map[string][]string) error {
	done := map[string]bool{}
	for range tasks {
		for _, t := range tasks {
			if !slices.ContainsFunc(waiting[t.Name], func(p string) bool { return !done[p] }) {
				done[t.Name] = true
			}
		}
	}
	for _, t := range tasks {
		if !done[t.Name] {
			return fmt.Errorf("cycle detected; task %q depends on itself", t.Name)
		}
	}
	return nil
}
