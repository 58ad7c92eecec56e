package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/replay"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

const (
	reader   = "system:serviceaccount:team:reader"
	stranger = "system:serviceaccount:team:stranger"
)

// roles grants rights by user name or group.
type roles map[string]bool

func (r roles) Allowed(_ context.Context, c *authn.Caller, right review.Right, _ authn.Purpose) (bool, error) {
	if r["broken"] {
		return false, problem.New(problem.SourceFailed, "")
	}
	for _, who := range append(slices.Clone(c.Groups), c.Username) {
		if r[strings.Join([]string{who, right.Verb, right.Resource, right.Namespace}, " ")] {
			return true, nil
		}
	}
	return false, nil
}

func line(op, app, caller, decision, rule string, more ...string) string {
	fields := map[string]string{"msg": "audit", "time": "2026-11-29T00:00:00Z", "op": op, "app": app, "caller": caller, "decision": decision, "rule": rule}
	for i := 0; i < len(more); i += 2 {
		fields[more[i]] = more[i+1]
	}
	for k, v := range fields {
		if v == "" {
			delete(fields, k)
		}
	}
	raw, _ := json.Marshal(fields)
	return string(raw)
}

func tally(t *testing.T, kinds int, lines ...string) *replay.Tally {
	t.Helper()
	tl := replay.NewTally(kinds)
	if err := tl.Read(t.Context(), "f", strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	return tl
}

func judge(t *testing.T, r roles, g replay.Groups, tl *replay.Tally) *replay.Report {
	t.Helper()
	report, err := replay.Judge(t.Context(), replay.Config{
		Access: r, Groups: g, Concurrency: 4, Namespaces: namespaces.Fixed{"app-shop-cicd": true, "app-two-cicd": true, "infra-two-cicd": true},
	}, tl)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestWhatWouldBeDecidedOtherwise(t *testing.T) {
	r := roles{
		reader + " list runs app-shop-cicd":             true,
		"release-team cancel runs app-shop-cicd":        true,
		"system:serviceaccounts:team list events ":      true,
		"people:octocat list releases app-shop-cicd":    true,
		reader + " list runs app-two-cicd":              true,
		reader + " list runs infra-two-cicd":            true,
		reader + " list releases app-none-cicd":         true,
		"system:authenticated list tests app-shop-cicd": true,
	}
	groups := replay.Groups{"ana": {"release-team"}, "people:octocat": nil}
	for name, tc := range map[string]struct {
		line string
		want string // the rule now, "allow", or "" for no difference
	}{
		"allowed and still so":                     {line("listRuns", "shop", reader, "allow", ""), ""},
		"allowed and failed behind it":             {line("listRuns", "shop", reader, "allow", "GP-API-502"), ""},
		"over a limit is allowed":                  {line("listRuns", "shop", reader, "allow", "GP-EDGE-429"), ""},
		"allowed and now refused":                  {line("getRelease", "shop", reader, "allow", ""), "GP-AUTHZ-001"},
		"allowed and its app gone":                 {line("listReleases", "none", reader, "allow", ""), "GP-API-404"},
		"allowed and its name held twice":          {line("listRuns", "two", reader, "allow", ""), "GP-API-409"},
		"refused and still so":                     {line("listRuns", "shop", stranger, "deny", "GP-AUTHZ-001"), ""},
		"refused and now allowed":                  {line("listRuns", "shop", reader, "deny", "GP-AUTHZ-001"), "allow"},
		"missing and now there":                    {line("listRuns", "shop", reader, "deny", "GP-API-404"), "allow"},
		"refused, and by another rule now":         {line("listReleases", "none", reader, "deny", "GP-AUTHZ-001"), ""},
		"a group of every account":                 {line("listRecentEvents", "", stranger, "deny", "GP-AUTHZ-001"), "allow"},
		"a group by the file":                      {line("cancelPipelineRun", "shop", "ana", "deny", "GP-AUTHZ-001"), "allow"},
		"a write for a person":                     {line("cancelPipelineRun", "shop", "ana", "allow", "", "onBehalfOf", "bob"), ""},
		"a write for a person that is not allowed": {line("rerunPipelineRun", "shop", "ana", "allow", "", "onBehalfOf", "bob"), "GP-AUTHZ-001"},
		"a person":                          {line("listReleases", "shop", "people:octocat", "deny", "GP-AUTHZ-001"), "allow"},
		"a person by the group of all":      {line("listTests", "shop", "people:x", "deny", "GP-AUTHZ-001"), "allow"},
		"nothing but a token":               {line("whoami", "", stranger, "allow", ""), ""},
		"nothing but a token, about an app": {line("whoami", "none", stranger, "allow", ""), ""},
		"the whole fleet":                   {line("listLiveRuns", "", reader, "allow", ""), "GP-AUTHZ-001"},
		"a part of the fleet":               {line("listLiveRuns", "shop", reader, "allow", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, r, groups, tally(t, 10, tc.line, tc.line))
			if got.Judged != 2 || len(got.Unknown)+len(got.Unaffected)+got.Malformed+got.Other > 0 {
				t.Fatalf("got %+v", got)
			}
			if (tc.want == "") != (len(got.Differences) == 0) {
				t.Fatalf("got %+v", got.Differences)
			}
			if tc.want == "" {
				return
			}
			d := got.Differences[0]
			if d.Calls != 2 || d.First == "" || d.Last == "" || d.Now.Allowed != (tc.want == "allow") || (!d.Now.Allowed && d.Now.Rule != tc.want) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// Every line that is not decided again is listed, and says why.
func TestNoLineIsSkippedWithoutAWord(t *testing.T) {
	for name, tc := range map[string]struct {
		line       string
		why        string
		unaffected bool
	}{
		"no token":                  {line("listRuns", "shop", "", "deny", "GP-AUTH-001"), "before any right", true},
		"a missing person":          {line("cancelPipelineRun", "shop", reader, "deny", "GP-AUTH-004"), "before any right", true},
		"a malformed name":          {line("listRuns", "", reader, "deny", "GP-API-400"), "before any right", true},
		"a call of nothing":         {line("_unmatched", "", "", "deny", "GP-EDGE-404"), "no operation", true},
		"authz away":                {line("listRuns", "", "", "deny", "GP-EDGE-503"), "nobody decided", false},
		"the API server away":       {line("listRuns", "shop", reader, "deny", "GP-API-502"), "nobody decided", false},
		"left before the decision":  {line("listRuns", "", "", "deny", ""), "nobody decided", false},
		"a user of unknown groups":  {line("listRuns", "shop", "ana", "allow", ""), "groups", false},
		"a person without a name":   {line("listRuns", "shop", "people:", "allow", ""), "groups", false},
		"no name of an account":     {line("listRuns", "shop", "system:serviceaccount:x", "allow", ""), "groups", false},
		"an operation of the past":  {line("listDogs", "shop", reader, "allow", ""), "contract", false},
		"no caller":                 {line("listRuns", "shop", "", "allow", ""), "no caller", false},
		"an app that was never one": {line("getContract", "shop", reader, "allow", ""), "about no app", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, roles{}, nil, tally(t, 10, tc.line, tc.line))
			list, other := got.Unknown, got.Unaffected
			if tc.unaffected {
				list, other = other, list
			}
			if len(list) != 1 || len(other) != 0 || list[0].Calls != 2 || !strings.Contains(list[0].Why, tc.why) || got.Judged != 0 {
				t.Errorf("got %+v", got)
			}
			if got.Incomplete {
				t.Error("it counts as incomplete")
			}
			if !strings.Contains(got.Text(), tc.why) {
				t.Errorf("the text does not say so: %s", got.Text())
			}
		})
	}
	got := judge(t, roles{"broken": true}, nil, tally(t, 10, line("listRuns", "shop", reader, "allow", "")))
	if !got.Incomplete || len(got.Differences) != 0 || len(got.Unknown) != 1 {
		t.Errorf("no answer: %+v", got)
	}
}

func TestLinesThatAreNotReadableAreCountedAndShown(t *testing.T) {
	good := line("listRuns", "shop", reader, "allow", "")
	tl := tally(t, 10, good, "{", "", "plain text", `{"msg":"audit"}`, `{"msg":"audit","op":"x","decision":"maybe"}`, `{"msg":"audit.write","op":"x"}`, `{"level":"INFO"}`,
		`{"msg":"audit","op":"x","op":"y","decision":"deny"}`, `{"msg":"audit","op":"`+strings.Repeat("x", 1025)+`","decision":"deny"}`,
		`{"msg":"audit","op":"\u001b[2J","decision":"deny"}`, `"`+strings.Repeat("x", 200_000)+`"`, good, line("_board", "", "", "public", ""))
	if err := tl.Check(); err != nil {
		t.Fatal(err)
	}
	r := judge(t, roles{reader + " list runs app-shop-cicd": true}, nil, tl)
	if r.Lines != 13 || r.Calls != 2 || r.Other != 3 || r.Malformed != 8 || r.Judged != 2 {
		t.Errorf("got %+v", r)
	}
	var places []string
	for _, m := range r.MalformedLines {
		places = append(places, m.Line)
	}
	if want := []string{"f:2", "f:4", "f:5", "f:6", "f:9", "f:10", "f:11", "f:12"}; !slices.Equal(places, want) {
		t.Errorf("malformed: %v", r.MalformedLines)
	}
	for _, input := range []string{"", "{\n{\n", `{"level":"INFO"}`} {
		if err := tally(t, 10, input).Check(); err == nil {
			t.Errorf("%q has nothing to decide and is no error", input)
		}
	}
}

func TestMemoryIsBoundedAndSaysSo(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, line("listRuns", fmt.Sprintf("app-%d", i), reader, "deny", "GP-AUTHZ-001"))
	}
	r := judge(t, roles{}, nil, tally(t, 20, slices.Concat(lines, lines)...))
	if r.Judged != 40 || len(r.Unknown) != 1 || r.Unknown[0].Calls != 20 || !r.Incomplete {
		t.Errorf("got %+v", r)
	}
}

func TestTheNamespacesOfAClusterThatOnlyHasRoles(t *testing.T) {
	tl := tally(t, 100,
		line("listRuns", "found", reader, "allow", ""), line("listRuns", "infra", reader, "allow", ""), line("listRuns", "gone", reader, "deny", "GP-API-404"),
		line("listRuns", "gone", stranger, "deny", "GP-AUTHZ-001"), line("listRuns", "unknown", stranger, "deny", "GP-AUTHZ-001"),
		line("listRuns", "both", reader, "deny", "GP-API-409"), line("whoami", "gone", reader, "allow", ""), line("listLiveRuns", "", reader, "allow", ""))
	got := tl.Namespaces([]string{"infra-infra-cicd", "team"})
	want := namespaces.Fixed{"app-found-cicd": true, "infra-infra-cicd": true, "team": true, "app-unknown-cicd": true, "app-both-cicd": true, "infra-both-cicd": true}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestGroupsAreReadOrRefused(t *testing.T) {
	if g, err := replay.ReadGroups([]byte("ana: [a, b]\nbob: []\n")); err != nil || len(g) != 2 || len(g["ana"]) != 2 {
		t.Errorf("got %v, %v", g, err)
	}
	for _, bad := range []string{"ana: a", "- ana", "ana: [a]\nana: [b]"} {
		if _, err := replay.ReadGroups([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// FuzzParseLine looks for a line that is taken and says what no edge says.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{line("listRuns", "shop", reader, "allow", ""), line("_unmatched", "", "", "deny", "GP-EDGE-404"), `{"msg":"audit","op":"x","decision":"deny"}`, `{}`, `[]`, `{"msg":"audit","op":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := replay.ParseLine(raw)
		if err != nil {
			if l != (replay.Line{}) || len(err.Error()) > 100 {
				t.Errorf("%+v, %v", l, err)
			}
			return
		}
		again := line(l.Op, l.App, l.Caller, map[bool]string{true: "allow", false: "deny"}[l.Allowed], l.Rule, "time", l.Time, "onBehalfOf", l.Person)
		if back, err := replay.ParseLine([]byte(again)); err != nil || back != l {
			t.Errorf("%+v is read back as %+v, %v", l, back, err)
		}
	})
}
