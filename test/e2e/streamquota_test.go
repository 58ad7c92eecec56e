package e2e_test

import (
	"context"
	"net/http"
	"testing"
)

// One caller has no more streams than its share of a replica, live streams and
// followed logs together, a person fewer still, and others go on.
func TestNobodyTakesAllStreamsOfAReplica(t *testing.T) {
	const path, perCaller, perPerson = "/v1/apps/gate-api/live/stream", 50, 10
	for name, tt := range map[string]struct {
		share   int
		changes []change
	}{
		"a caller":                       {perCaller, []change{as("reader")}},
		"a person whom a delegate names": {perPerson, []change{as("delegate"), onBehalfOf("user:default/e2e-quota")}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			for i := range tt.share {
				v := newViewer(gw.URL, "gate-api", tt.changes...)
				if err := v.connect(ctx, streamClient); err != nil {
					t.Fatalf("stream %d of %d: %v", i+1, tt.share, err)
				}
				defer func() { _ = v.body.Close() }()
			}
			a := get(t, path, tt.changes...)
			refused(t, a, http.StatusTooManyRequests, "GP-API-429")
			ok(t, get(t, path, as("app-reader")))
			leave()
			eventually(t, "who left may come again", func() bool {
				return get(t, path, tt.changes...).status == http.StatusOK
			})
		})
	}
}
