package tekton

import (
	"encoding/json"
	"maps"
	"slices"
)

// Named gives the names of the TaskRuns that a PipelineRun says it made, in no
// order. ok is false when what it says cannot be read.
func (o *Object) Named() (names []string, ok bool) {
	names = slices.Concat(o.Status.Children.names, o.Status.TaskRuns.names)
	return names, !o.Status.Children.odd && !o.Status.TaskRuns.odd
}

// named are names of TaskRuns; odd says that there may be others.
type named struct {
	names []string
	odd   bool
}

// children reads references to what a PipelineRun made. What is none of that is odd
// and no error: a run is shown all the same.
type children struct{ named }

// UnmarshalJSON takes everything.
func (c *children) UnmarshalJSON(raw []byte) error {
	var all []struct{ Kind, Name string }
	c.named = named{odd: json.Unmarshal(raw, &all) != nil}
	for _, child := range all {
		switch {
		case child.Kind != "TaskRun" && child.Kind != "": // of a custom task, say
		case child.Name == "":
			c.odd = true
		default:
			c.names = append(c.names, child.Name)
		}
	}
	return nil
}

// embedded reads TaskRuns that are in their PipelineRun, by name.
type embedded struct{ named }

// UnmarshalJSON takes everything.
func (e *embedded) UnmarshalJSON(raw []byte) error {
	var all map[string]struct{}
	e.named = named{odd: json.Unmarshal(raw, &all) != nil}
	e.names = slices.Collect(maps.Keys(all))
	return nil
}
