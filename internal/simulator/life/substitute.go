package life

import (
	"regexp"
	"strings"
)

// reference matches what a value may refer to: a parameter, or a result of a task.
var reference = regexp.MustCompile(`\$\((params\.([\w.-]+)|tasks\.([\w-]+)\.results\.([\w.-]+))\)`)

// values is what references stand for: "params.x" and "tasks.x.results.y".
type values map[string]string

// resolve replaces every reference that is known; the others stay as they are.
func (v values) resolve(text string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := v[strings.TrimSuffix(strings.TrimPrefix(match, "$("), ")")]; ok {
			return value
		}
		return match
	})
}

// value resolves inside a parameter's or a result's value: text, a list or an object of texts.
func (v values) value(value any) any {
	switch value := value.(type) {
	case string:
		return v.resolve(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = v.value(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = v.value(item)
		}
		return object
	default:
		return value
	}
}

func (v values) params(params []Param) []Param {
	if len(params) == 0 {
		return nil
	}
	resolved := make([]Param, len(params))
	for i, p := range params {
		resolved[i] = Param{Name: p.Name, Value: v.value(p.Value)}
	}
	return resolved
}

func (v values) when(expressions []When) []When {
	if len(expressions) == 0 {
		return nil
	}
	resolved := make([]When, len(expressions))
	for i, w := range expressions {
		resolved[i] = When{Input: v.resolve(w.Input), Operator: w.Operator, CEL: w.CEL}
		for _, item := range w.Values {
			resolved[i].Values = append(resolved[i].Values, v.resolve(item))
		}
	}
	return resolved
}

// spec resolves the parts of a pipeline that may refer to its parameters.
func (v values) spec(spec PipelineSpec) PipelineSpec {
	spec.Tasks = v.tasks(spec.Tasks)
	spec.Finally = v.tasks(spec.Finally)
	return spec
}

func (v values) tasks(tasks []PipelineTask) []PipelineTask {
	resolved := make([]PipelineTask, len(tasks))
	for i, t := range tasks {
		t.Params = v.params(t.Params)
		t.When = v.when(t.When)
		resolved[i] = t
	}
	return resolved
}

// paramValues is what a run's parameters and the pipeline's defaults stand for. Only texts can be referred to.
func paramValues(declared []ParamSpec, given []Param) values {
	v := values{}
	for _, p := range declared {
		if text, ok := p.Default.(string); ok {
			v["params."+p.Name] = text
		}
	}
	for _, p := range given {
		if text, ok := p.Value.(string); ok {
			v["params."+p.Name] = text
		}
	}
	return v
}

// resultTasks names the tasks whose results the value refers to.
func resultTasks(value any) []string {
	switch value := value.(type) {
	case string:
		var names []string
		for _, match := range reference.FindAllStringSubmatch(value, -1) {
			if match[3] != "" {
				names = append(names, match[3])
			}
		}
		return names
	case []any:
		var names []string
		for _, item := range value {
			names = append(names, resultTasks(item)...)
		}
		return names
	case map[string]any:
		var names []string
		for _, item := range value {
			names = append(names, resultTasks(item)...)
		}
		return names
	default:
		return nil
	}
}
