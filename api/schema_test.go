package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"hangar.io/glidepath/api"
)

const liveObject = `{
	"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
	"metadata": {
		"name": "ci-0-build-abc", "namespace": "app-gate-api-cicd", "uid": "0c5f7a3e-8d0b-4a53-9d0a-1f0f4a9b2c11",
		"resourceVersion": "48213", "creationTimestamp": "2026-10-31T10:00:00Z", "labels": {"a": "b"}
	},
	"spec": {"pipelineRef": {"resolver": "cluster"}}, "status": {"anything": [1, {"else": null}]}
}`

const whoamiBody = `{"username": "system:serviceaccount:a:b", "groups": [], "kind": "serviceAccount", "audiences": []}`

func TestSchemas(t *testing.T) {
	t.Parallel()
	schemas := loadSpec(t).Components.Schemas
	taskRun := strings.Replace(liveObject, `"PipelineRun"`, `"TaskRun"`, 1)
	for name, test := range map[string]struct {
		schema, body string
		valid        bool
	}{
		"a refusal":                         {"Error", `{"rule": "GP-AUTHZ-001", "message": "not allowed", "hint": "pass app=", "traceId": "4bf92f3577b34da6a3ce929d0e0e4736"}`, true},
		"the shortest refusal":              {"Error", `{"rule": "GP-EDGE-503", "message": "away"}`, true},
		"a refusal without a rule":          {"Error", `{"message": "not allowed"}`, false},
		"a refusal of an unknown form":      {"Error", `{"rule": "403", "message": "not allowed"}`, false},
		"a refusal that says too much":      {"Error", `{"rule": "GP-API-502", "message": "failed", "cause": "dial tcp"}`, false},
		"a hint that is null":               {"Error", `{"rule": "GP-API-502", "message": "failed", "hint": null}`, false},
		"a hint that is empty":              {"Error", `{"rule": "GP-API-502", "message": "failed", "hint": ""}`, false},
		"a trace id that is none":           {"Error", `{"rule": "GP-API-502", "message": "failed", "traceId": "-"}`, false},
		"a live list":                       {"LiveList", `{"pipelineRuns": [` + liveObject + `], "taskRuns": [` + taskRun + `]}`, true},
		"an empty live list":                {"LiveList", `{"pipelineRuns": [], "taskRuns": []}`, true},
		"a live list with a null":           {"LiveList", `{"pipelineRuns": null, "taskRuns": []}`, false},
		"a live list without TaskRuns":      {"LiveList", `{"pipelineRuns": []}`, false},
		"a TaskRun among the PipelineRuns":  {"LiveList", `{"pipelineRuns": [` + taskRun + `], "taskRuns": []}`, false},
		"a live object without a kind":      {"PipelineRun", strings.Replace(liveObject, `"kind"`, `"kin"`, 1), false},
		"a live object of an old version":   {"PipelineRun", strings.Replace(liveObject, "tekton.dev/v1", "tekton.dev/v1beta1", 1), false},
		"a live object with managed fields": {"PipelineRun", strings.Replace(liveObject, `"labels"`, `"managedFields": [], "labels"`, 1), false},
		"a last page":                       {"LivePipelineRunList", `{"pipelineRuns": []}`, true},
		"a page with more to come":          {"LivePipelineRunList", `{"pipelineRuns": [` + liveObject + `], "continue": "abc_-9"}`, true},
		"a page with an empty continue":     {"LivePipelineRunList", `{"pipelineRuns": [], "continue": ""}`, false},
		"no TaskRuns":                       {"LiveTaskRunList", `{"taskRuns": []}`, true},
		"TaskRuns that never page":          {"LiveTaskRunList", `{"taskRuns": [], "continue": "abc"}`, false},
		"who the caller is":                 {"Identity", whoamiBody, true},
		"a caller of an unknown kind":       {"Identity", strings.Replace(whoamiBody, "serviceAccount", "robot", 1), false},
		"a caller whose groups are missing": {"Identity", strings.Replace(whoamiBody, `"groups": [],`, "", 1), false},
		"a caller's token":                  {"Identity", strings.Replace(whoamiBody, "}", `, "token": "x"}`, 1), false},
		"the contract as it is built":       {"Contract", string(api.Contract()), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var value any
			if err := json.Unmarshal([]byte(test.body), &value); err != nil {
				t.Fatal(err)
			}
			if err := schemas[test.schema].Value.VisitJSON(value, openapi3.VisitAsResponse()); (err == nil) != test.valid {
				t.Errorf("valid: %v, want %v: %v", err == nil, test.valid, err)
			}
		})
	}
}
