package rules

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report sets claims against rules.
type Report struct {
	// Areas are in alphabetical order.
	Areas []Area
	// Faults say why the report must fail the build; nil when it need not.
	Faults error
}

// Area is the state of one area.
type Area struct {
	Name string
	// Proved and All count rules; Missing holds the ids of the others in the
	// order of the list.
	Proved, All int
	Missing     []string
}

// NewReport counts which rules have a claim. Claims of unknown rules, unknown
// finished areas, and finished areas with a rule missing become faults.
func NewReport(list []Rule, claims []Claim, done []string) Report {
	known := map[string]bool{}
	for _, rule := range list {
		known[rule.ID] = true
	}
	var faults []error
	proved := map[string]bool{}
	for _, claim := range claims {
		if !known[claim.Rule] {
			faults = append(faults, fmt.Errorf("%s: %s claims %s, which is no rule", claim.Pos, claim.Test, claim.Rule))
		}
		proved[claim.Rule] = true
	}

	areas := map[string]*Area{}
	for _, rule := range list {
		area := areas[rule.Area]
		if area == nil {
			area = &Area{Name: rule.Area}
			areas[rule.Area] = area
		}
		area.All++
		if proved[rule.ID] {
			area.Proved++
		} else {
			area.Missing = append(area.Missing, rule.ID)
		}
	}

	for _, name := range done {
		area := areas[name]
		switch {
		case area == nil:
			faults = append(faults, fmt.Errorf("finished area %q has no rule", name))
		case len(area.Missing) > 0:
			faults = append(faults, fmt.Errorf("area %s is declared finished, but no test proves %s", name, strings.Join(area.Missing, ", ")))
		}
	}

	report := Report{Faults: errors.Join(faults...)}
	for _, area := range areas {
		report.Areas = append(report.Areas, *area)
	}
	slices.SortFunc(report.Areas, func(a, b Area) int { return strings.Compare(a.Name, b.Name) })
	return report
}

// WriteTo prints one line "AREA PROVED/ALL" an area and one for the total, then
// the ids that are not proved, a paragraph an area.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var text strings.Builder
	proved, all := 0, 0
	for _, area := range r.Areas {
		fmt.Fprintf(&text, "%s %d/%d\n", area.Name, area.Proved, area.All)
		proved += area.Proved
		all += area.All
	}
	fmt.Fprintf(&text, "total %d/%d\n", proved, all)
	for _, area := range r.Areas {
		if len(area.Missing) > 0 {
			fmt.Fprintf(&text, "\nnot proved in %s:\n%s\n", area.Name, wrap(area.Missing, 16))
		}
	}
	n, err := io.WriteString(w, text.String())
	return int64(n), err
}

func wrap(ids []string, perLine int) string {
	var lines []string
	for chunk := range slices.Chunk(ids, perLine) {
		lines = append(lines, strings.Join(chunk, " "))
	}
	return strings.Join(lines, "\n")
}
