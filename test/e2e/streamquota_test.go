package e2e_test

import (
	"net/http"
	"strconv"
	"testing"

	"hangar.io/glidepath/internal/fleet"
)

// One caller has no more streams than its share of a replica, live streams and
// followed logs together, a person fewer still, and others go on.
func TestNobodyTakesAllStreamsOfAReplica(t *testing.T) {
	const app, stream, perCaller, perPerson = "gate-api", "/v1/apps/gate-api/live/stream", 50, 10
	x := newTask(t, app, "e2e-quota")
	x.write("one")
	for name, tt := range map[string]struct {
		share int
		who   []change
	}{
		"a caller":                       {perCaller, []change{as("app-reader")}},
		"a person who signed in":         {perPerson, []change{bearer(idToken(t, fleet.PersonReader, nil))}},
		"a person whom a delegate names": {perPerson, []change{as("delegate"), onBehalfOf("user:default/many-streams")}},
		"another of that delegate":       {perPerson, []change{as("delegate"), onBehalfOf("user:default/many-more")}},
	} {
		t.Run(name, func(t *testing.T) {
			leave := func() {}
			for range tt.share / 2 {
				openLive(t, gw, app, tt.who...)
				_, leave = openAt(t, gw, x.path, tt.who...)
			}
			for op, path := range map[string]string{"streamLiveRuns": stream, "getLiveLogs": x.path + "?follow=true"} {
				a := get(t, path, tt.who...)
				refused(t, a, http.StatusTooManyRequests, "GP-API-429")
				if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 {
					t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
				}
				expectLine(t, auditOf(t, a), line{"op": op, "status": 429.0, "rule": "GP-API-429", "decision": "allow"})
			}
			ok(t, get(t, stream, as("reader")))
			leave()
			eventually(t, "there is room for one again", func() bool {
				return get(t, stream, tt.who...).status == http.StatusOK
			})
		})
	}
}
