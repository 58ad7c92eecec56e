package results

import (
	"net/http"
	"strings"
)

// serveSummary counts records by the outcome of the runs in them. Groups are not
// counted.
func (s *Server) serveSummary(w http.ResponseWriter, r *http.Request, t target) error {
	selects, err := compile(s.filters.records, r.URL.Query().Get("filter"))
	if err != nil {
		return err
	}
	rows, _, err := listQuery{size: int(^uint(0) >> 1)}.page(target{kind: kindRecords, parent: t.parent, result: t.result}, selects,
		s.rows(target{kind: kindRecords, parent: t.parent, result: t.result}, listQuery{}))
	if err != nil {
		rows = nil
	}
	counts := map[string]int{"total": len(rows), "succeeded": 0, "failed": 0, "cancelled": 0, "running": 0, "others": 0}
	for _, r := range rows {
		reason, _ := r.index.condition("0", "reason")
		counts[outcome(reason)]++
	}
	answer := map[string]int{}
	for figure := range strings.SplitSeq(r.URL.Query().Get("summary"), ",") {
		n, ok := counts[figure]
		if !ok {
			return invalid("invalid aggregate query: " + figure)
		}
		answer[figure] = n
	}
	return s.write(w, map[string]any{"summary": []any{answer}})
}

func outcome(reason *string) string {
	if reason == nil {
		return "others"
	}
	switch *reason {
	case "Succeeded", "Completed":
		return "succeeded"
	case "Failed":
		return "failed"
	case "Cancelled", "TaskRunCancelled":
		return "cancelled"
	case "Running":
		return "running"
	default:
		return "others"
	}
}
