package rules

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestScanFindsClaims(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		want   []Claim
	}{
		"in a doc comment": {
			"package p\n\n// TestA shows it.\n// rule: R001\nfunc TestA(t *testing.T) {}\n",
			[]Claim{{"R001", "TestA", "p/a_test.go:4"}},
		},
		"in a body, several at once": {
			"package p\n\nfunc TestA(t *testing.T) {\n\t// rule: R001, R002\n\tf()\n}\n",
			[]Claim{{"R001", "TestA", "p/a_test.go:4"}, {"R002", "TestA", "p/a_test.go:4"}},
		},
		"beside a case of a table": {
			"package p\n\nfunc TestA(t *testing.T) {\n\t_ = []int{\n\t\t1, // rule: R003\n\t}\n}\n",
			[]Claim{{"R003", "TestA", "p/a_test.go:5"}},
		},
		"in a fuzz target": {
			"package p\n\nfunc FuzzA(f *testing.F) {\n\t// rule: R001\n}\n",
			[]Claim{{"R001", "FuzzA", "p/a_test.go:4"}},
		},
		"behind a build constraint": {
			"//go:build never\n\npackage p\n\n// rule: R001\nfunc TestA(t *testing.T) {}\n",
			[]Claim{{"R001", "TestA", "p/a_test.go:5"}},
		},
		"in a test that skips under a condition": {
			"package p\n\n// rule: R001\nfunc TestA(t *testing.T) {\n\tif short {\n\t\tt.Skip()\n\t}\n}\n",
			[]Claim{{"R001", "TestA", "p/a_test.go:3"}},
		},
		"never in a string": {
			"package p\n\nfunc TestA(t *testing.T) {\n\t_ = `\n// rule: R001\n`\n}\n", nil,
		},
		"never in prose about rules": {
			"package p\n\n// The rule: names are lower case.\nfunc TestA(t *testing.T) {}\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Scan(fstest.MapFS{"p/a_test.go": {Data: []byte(test.source)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("claims differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScanRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ source, want string }{
		"a claim above a helper":       {"package p\n\n// rule: R001\nfunc check() {}\n", "belongs to no test function"},
		"a claim above a method":       {"package p\n\n// rule: R001\nfunc (s) TestA(t *testing.T) {}\n", "belongs to no test function"},
		"a claim above a lookalike":    {"package p\n\n// rule: R001\nfunc Testament(t *testing.T) {}\n", "belongs to no test function"},
		"a claim of TestMain":          {"package p\n\n// rule: R001\nfunc TestMain(m *testing.M) {}\n", "belongs to no test function"},
		"a claim of a skipped test":    {"package p\n\n// rule: R001\nfunc TestA(t *testing.T) {\n\tt.Skip(\"later\")\n}\n", "TestA claims a rule but is always skipped"},
		"a claim without a space":      {"package p\n\n//rule: R001\nfunc TestA(t *testing.T) {}\n", "is not of the form"},
		"a claim in the plural":        {"package p\n\n// rules: R001\nfunc TestA(t *testing.T) {}\n", "is not of the form"},
		"an id of four digits":         {"package p\n\n// rule: R0011\nfunc TestA(t *testing.T) {}\n", "is not of the form"},
		"words behind the ids":         {"package p\n\n// rule: R001 for reads\nfunc TestA(t *testing.T) {}\n", "is not of the form"},
		"a file that is not Go":        {"package", "parsing a test file"},
		"the second fault of one file": {"package p\n\n// rule: R001\nvar a int\n\n// rule: R002\nvar b int\n", "a_test.go:6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims, err := Scan(fstest.MapFS{"p/a_test.go": {Data: []byte(test.source)}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if len(claims) != 0 {
				t.Errorf("got claims %v, want none", claims)
			}
		})
	}
}

func TestScanLeavesOutWhatGoLeavesOut(t *testing.T) {
	t.Parallel()
	claim := &fstest.MapFile{Data: []byte("package p\n\n// rule: R001\nfunc TestA(t *testing.T) {}\n")}
	got, err := Scan(fstest.MapFS{
		"p/a_test.go":          claim,
		"p/a.go":               claim,
		"p/testdata/a_test.go": claim,
		"vendor/v/a_test.go":   claim,
		".tools/a_test.go":     claim,
		"_old/a_test.go":       claim,
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Claim{{"R001", "TestA", "p/a_test.go:3"}}, got); diff != "" {
		t.Errorf("claims differ (-want +got):\n%s", diff)
	}
}

func FuzzScan(f *testing.F) {
	f.Add("package p\n\n// rule: R001, R002\nfunc TestA(t *testing.T) {}\n")
	f.Add("package p\n// rule: R1\n")
	f.Fuzz(func(t *testing.T, source string) {
		claims, _ := Scan(fstest.MapFS{"a_test.go": {Data: []byte(source)}})
		for _, claim := range claims {
			if !idPattern.MatchString(claim.Rule) || !isTest(claim.Test) {
				t.Errorf("claim %+v has no rule id or no test", claim)
			}
		}
	})
}
