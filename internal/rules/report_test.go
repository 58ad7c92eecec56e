package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var listed = []Rule{
	{ID: "R001", Area: "gateway"},
	{ID: "R002", Area: "authz"},
	{ID: "R003", Area: "gateway"},
}

func TestReportCountsEachRuleOnce(t *testing.T) {
	t.Parallel()
	report := NewReport(listed, []Claim{{Rule: "R001", Test: "TestA"}, {Rule: "R001", Test: "TestB"}}, nil)
	if report.Faults != nil {
		t.Fatal(report.Faults)
	}
	want := []Area{
		{Name: "authz", All: 1, Missing: []string{"R002"}},
		{Name: "gateway", Proved: 1, All: 2, Missing: []string{"R003"}},
	}
	if diff := cmp.Diff(want, report.Areas); diff != "" {
		t.Errorf("areas differ (-want +got):\n%s", diff)
	}
}

func TestReportPrintsAreasThenWhatIsMissing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if _, err := NewReport(listed, []Claim{{Rule: "R002"}}, nil).WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	want := "authz 1/1\ngateway 0/2\ntotal 1/3\n\nnot proved in gateway:\nR001 R003\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
}

func TestReportFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claims []Claim
		done   []string
		want   string
	}{
		"an unknown rule": {
			[]Claim{{Rule: "R999", Test: "TestA", Pos: "a_test.go:1"}},
			nil,
			"a_test.go:1: TestA claims R999, which is no rule",
		},
		"a finished area with a rule missing": {
			[]Claim{{Rule: "R001"}},
			[]string{"gateway"},
			"area gateway is declared finished, but no test proves R003",
		},
		"a finished area that does not exist": {
			nil, []string{"edge"}, `finished area "edge" has no rule`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := NewReport(listed, test.claims, test.done).Faults
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got fault %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestReportAcceptsAFinishedArea(t *testing.T) {
	t.Parallel()
	if err := NewReport(listed, []Claim{{Rule: "R002"}}, []string{"authz"}).Faults; err != nil {
		t.Error(err)
	}
}
