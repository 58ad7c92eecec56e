package operation_test

import (
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/operation"
)

func TestWhichCallsStayOpen(t *testing.T) {
	list, _ := api.Lookup("listLive")
	list.ID = "listLive2"
	follows, _ := api.Lookup("getLiveLogs")
	follows.Stream = false
	follows.QueryParams = append(follows.QueryParams, api.Param{Name: "follow", In: "query"})
	stream, _ := api.Lookup("streamLiveRuns")
	table, err := operation.NewTable([]api.Operation{list, follows, stream})
	if err != nil {
		t.Fatal(err)
	}
	for target, tc := range map[string]struct {
		op   string
		want bool
	}{
		"/v1/apps/a/live":                                           {"listLive2", false},
		"/v1/apps/a/live?follow=true":                               {"listLive2", false},
		"/v1/apps/a/live/stream":                                    {"streamLiveRuns", true},
		"/v1/apps/a/live/taskruns/t/logs/c":                         {"getLiveLogs", false},
		"/v1/apps/a/live/taskruns/t/logs/c?tailLines=1":             {"getLiveLogs", false},
		"/v1/apps/a/live/taskruns/t/logs/c?follow=true":             {"getLiveLogs", true},
		"/v1/apps/a/live/taskruns/t/logs/c?tailLines=1&follow=1":    {"getLiveLogs", true},
		"/v1/apps/a/live/taskruns/t/logs/c?f%6fllow":                {"getLiveLogs", true},
		"/v1/apps/a/live/taskruns/t/logs/c?following=true&x=follow": {"getLiveLogs", false},
	} {
		op, _ := table.Lookup(tc.op)
		if got := op.Streams(target); got != tc.want {
			t.Errorf("%s %s: %v", tc.op, target, got)
		}
	}
}
