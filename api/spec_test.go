package api_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
)

func loadSpec(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	// Validation covers the examples too.
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func specOperation(t *testing.T, doc *openapi3.T, op api.Operation) *openapi3.Operation {
	t.Helper()
	item := doc.Paths.Value(op.Path)
	if item == nil || item.GetOperation(op.Method) == nil {
		t.Fatalf("openapi.yaml has no %s %s", op.Method, op.Path)
	}
	return item.GetOperation(op.Method)
}

// bounds are those of a number in a query: "1..720, 168 by default".
func bounds(s *openapi3.Schema) string {
	if s.Min == nil || s.Max == nil {
		return "not bounded"
	}
	text := strconv.FormatFloat(*s.Min, 'f', -1, 64) + ".." + strconv.FormatFloat(*s.Max, 'f', -1, 64)
	if byDefault, ok := s.Default.(float64); ok {
		text += ", " + strconv.FormatFloat(byDefault, 'f', -1, 64) + " by default"
	}
	return text
}

func TestNumbersInQueriesHaveTheirBounds(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"listRuns sinceHours":      "1..720, 168 by default",
		"listRuns limit":           "1..1000, 100 by default",
		"listFleetRuns sinceHours": "1..720, 168 by default",
		"listFleetRuns limit":      "1..1000, 100 by default",
		"listTests limit":          "1..200, 50 by default",
		"listRecentEvents limit":   "1..2000, 100 by default",
		// Without a limit these lists are whole.
		"listLiveRuns limit":      "1..1000",
		"listFleetReleases limit": "1..1000",
		"listReleaseEvents limit": "1..1000",
	}
	doc := loadSpec(t)
	got := map[string]string{}
	for _, op := range api.Operations() {
		for _, p := range specOperation(t, doc, op).Parameters {
			if p.Value.Schema.Value.Type.Is(openapi3.TypeInteger) {
				got[op.ID+" "+p.Value.Name] = bounds(p.Value.Schema.Value)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers in queries (-want +got):\n%s", diff)
	}
}

func TestQueryParametersOfEachOperation(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"whoami":              {"app"},
		"listRuns":            {"sinceHours", "limit", "view"},
		"listFleetRuns":       {"app", "sinceHours", "limit"},
		"listTests":           {"limit"},
		"getLiveLogs":         {"follow"},
		"listLiveRuns":        {"app", "limit", "continue"},
		"listLiveTaskRuns":    {"app", "pipelineRuns"},
		"listFleetReleases":   {"app", "limit", "continue"},
		"listReleaseEvents":   {"app", "limit", "continue"},
		"getRollbackPlan":     {"cluster"},
		"getEvidence":         {"image"},
		"rerunPipelineRun":    {"dryRun"},
		"cancelPipelineRun":   {"dryRun"},
		"promoteEnvironment":  {"dryRun"},
		"rollbackEnvironment": {"dryRun"},
		"streamEvents":        {"app", "type", "since"},
		"listRecentEvents":    {"app", "type", "since", "limit"},
	}
	got := map[string][]string{}
	for _, op := range api.Operations() {
		for _, p := range op.QueryParams {
			got[op.ID] = append(got[op.ID], p.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("query parameters (-want +got):\n%s", diff)
	}
}

func TestWritesTakeADryRunAndThoseThatCreateAKey(t *testing.T) {
	t.Parallel()
	keyed := []string{"rerunPipelineRun", "promoteEnvironment", "rollbackEnvironment"}
	for _, op := range api.Operations() {
		has := func(name string) bool {
			return slices.ContainsFunc(op.HeaderParams, func(p api.Param) bool { return p.Name == name })
		}
		if has("X-Glidepath-Dry-Run") != op.Write {
			t.Errorf("%s: takes X-Glidepath-Dry-Run: %v", op.ID, !op.Write)
		}
		if want := slices.Contains(keyed, op.ID); has("Idempotency-Key") != want {
			t.Errorf("%s: takes Idempotency-Key: %v", op.ID, !want)
		}
	}
}

// TestEveryRefusalIsDescribed wants the refusals that any call can meet on each
// operation, the others where they can happen, and one shape for all.
func TestEveryRefusalIsDescribed(t *testing.T) {
	t.Parallel()
	always := []string{"400", "401", "403", "405", "408", "413", "426", "429", "431", "502", "503", "504"}
	unprocessable := []string{
		"listEnvironments", "rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment", "validateCicd",
	}
	doc := loadSpec(t)
	for _, op := range api.Operations() {
		want := slices.Clone(always)
		if op.Scope != api.ScopeSelf {
			want = append(want, "404", "409")
		}
		if slices.Contains(unprocessable, op.ID) {
			want = append(want, "422")
		}
		slices.Sort(want)
		var got []string
		for status, response := range specOperation(t, doc, op).Responses.Map() {
			if status < "400" {
				continue
			}
			got = append(got, status)
			if ref := response.Value.Content.Get("application/json").Schema.Ref; ref != "#/components/schemas/Error" {
				t.Errorf("%s: the body of a %s is %q", op.ID, status, ref)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: refusals (-want +got):\n%s", op.ID, diff)
		}
	}
}

func TestEveryAnswerDescribesItsHeaders(t *testing.T) {
	t.Parallel()
	doc := loadSpec(t)
	extra := map[string][]string{
		"304": {"ETag", "Cache-Control", "Vary"},
		"401": {"WWW-Authenticate"},
		"405": {"Allow"},
		"429": {"Retry-After"},
	}
	conditional := []string{"listRuns", "getRun", "getRunLogs", "listFleetRuns", "listLive", "listLiveRuns", "listLiveTaskRuns", "listFleetReleases", "listReleaseEvents"}
	for _, op := range api.Operations() {
		responses := specOperation(t, doc, op).Responses.Map()
		if _, ok := responses["304"]; ok != slices.Contains(conditional, op.ID) {
			t.Errorf("%s: has an answer 304: %v", op.ID, ok)
		}
		for status, response := range responses {
			want := append([]string{"X-Glidepath-Trace-Id"}, extra[status]...)
			if status == "200" && slices.Contains(conditional, op.ID) {
				want = append(want, extra["304"]...)
			}
			for _, name := range want {
				if response.Value.Headers[name] == nil {
					t.Errorf("%s: the answer %s has no header %s", op.ID, status, name)
				}
			}
		}
	}
}

func TestEveryCallNeedsAToken(t *testing.T) {
	t.Parallel()
	doc := loadSpec(t)
	want := openapi3.SecurityRequirements{{"bearer": {}}, {"proxiedBearer": {}}}
	if diff := cmp.Diff(want, doc.Security); diff != "" {
		t.Errorf("security (-want +got):\n%s", diff)
	}
	for _, op := range api.Operations() {
		if specOperation(t, doc, op).Security != nil {
			t.Errorf("%s: has a security of its own", op.ID)
		}
	}
}

func TestATagIsABackend(t *testing.T) {
	t.Parallel()
	doc := loadSpec(t)
	var tags, backends []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	for _, op := range api.Operations() {
		backends = append(backends, op.Backend)
		if got := specOperation(t, doc, op).Tags; !slices.Equal(got, []string{op.Backend}) {
			t.Errorf("%s: backend %s, tags %q", op.ID, op.Backend, got)
		}
	}
	slices.Sort(backends)
	if backends = slices.Compact(backends); !slices.Equal(tags, backends) {
		t.Errorf("tags %q, backends %q", tags, backends)
	}
}

// TestBodiesOfRequestsAreClosed holds unknown fields to be refused.
func TestBodiesOfRequestsAreClosed(t *testing.T) {
	t.Parallel()
	doc := loadSpec(t)
	for _, op := range api.Operations() {
		body := specOperation(t, doc, op).RequestBody
		if body == nil {
			continue
		}
		schema := body.Value.Content.Get("application/json").Schema.Value
		for _, s := range append(openapi3.SchemaRefs{{Value: schema}}, schema.OneOf...) {
			closed := s.Value.AdditionalProperties.Has != nil && !*s.Value.AdditionalProperties.Has
			if !closed && len(s.Value.OneOf) == 0 {
				t.Errorf("%s: the body takes unknown fields", op.ID)
			}
		}
	}
}
