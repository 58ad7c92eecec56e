package extauthz_test

import (
	"context"
	"sync/atomic"
	"testing"
)

// broken is a context that panics when it is first asked for a value, as a bug
// in what reads the trace of a call would.
type broken struct {
	context.Context
	asked *atomic.Bool
}

func (b broken) Value(key any) any {
	if b.asked.CompareAndSwap(false, true) {
		panic("broken") //nolint:forbidigo // what a bug would do
	}
	return b.Context.Value(key)
}

func TestAPanicBeforeTheSpanRefusesTheCallToo(t *testing.T) {
	e := newEdge(t, allowing(caller(t, "reader")))
	resp, err := e.Check(broken{t.Context(), new(atomic.Bool)}, request("listLive", "GET", "/v1/apps/shop/live", nil))
	if err != nil || resp.GetOkResponse() != nil || bodyOf(t, resp).Rule != "GP-API-502" {
		t.Errorf("got %v, %v", resp, err)
	}
	if n := counter(t, e.reg, "glidepath_authz_panics_total"); n != 1 {
		t.Errorf("%v panics", n)
	}
}
