package results

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// literal is what may stand between the quotes of a filter. Results pastes it
// into its SQL as it is.
var literal = regexp.MustCompile(`^[A-Za-z0-9._/:@+-]{1,253}$`)

// filter is an expression in the part of CEL that Results turns into SQL. Its
// zero value selects everything. It is made by the functions below alone.
type filter string

// of selects the records of a kind, in both versions that archives hold.
func of(kind string) filter {
	return filter(fmt.Sprintf(`data_type in ["tekton.dev/v1.%s","tekton.dev/v1beta1.%s"]`, kind, kind))
}

// since selects what was made at t or later. It compares texts: a cast to a time
// fails the whole list, as an empty one, when one record holds something else.
// Kubernetes writes times in seconds and UTC, so their order is that of the texts.
func since(t time.Time) filter {
	return filter(fmt.Sprintf(`data.metadata.creationTimestamp >= "%s"`, t.UTC().Format(time.RFC3339)))
}

// oneOf selects the records whose field has one of the values. The field is one of
// ours, never a caller's.
func oneOf(field string, values ...string) (filter, error) {
	for _, v := range values {
		if !literal.MatchString(v) {
			return "", fmt.Errorf("filtering by %s: the value holds what may not stand in a filter", field)
		}
	}
	return filter(fmt.Sprintf(`%s in ["%s"]`, field, strings.Join(values, `","`))), nil
}

// all selects what every one of the filters selects.
func all(filters ...filter) filter {
	texts := make([]string, 0, len(filters))
	for _, f := range filters {
		if f != "" {
			texts = append(texts, string(f))
		}
	}
	return filter(strings.Join(texts, " && "))
}

// rowFields are the parts of a page that rows are made of, the token of the next
// one among them: without it a list would seem to end.
var rowFields = "next_page_token,records.name,records.create_time,records.data.type,records.data.value." + strings.Join([]string{
	"kind", "apiVersion",
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.creationTimestamp", "metadata.labels", "metadata.annotations",
	"spec.pipelineRef", "spec.params",
	"status.startTime", "status.completionTime", "status.conditions",
}, ",records.data.value.")
