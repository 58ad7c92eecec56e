package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
)

// watches says how many watches of a resource the API server has open in single
// namespaces, by its own count.
func watches(t *testing.T, resource string) float64 {
	t.Helper()
	raw, err := gw.APIServer.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, m := range families["apiserver_longrunning_requests"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["verb"] == "WATCH" && labels["resource"] == resource && labels["scope"] == "namespace" {
			sum += m.GetGauge().GetValue()
		}
	}
	return sum
}

// Two replicas serve two hundred viewers with one watch of each kind apiece. One
// viewer more is not served; and when one replica ends, its viewers
// go on at the other with no more than a reconnect, and miss nothing.
//
// rule: R256, R257, R258
func TestViewersCostOneWatchAReplicaAndGoOnWhenOneEnds(t *testing.T) {
	const most, staying, namespace = 100, 80, "app-sky-marshall-cicd"
	many := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis, Livehubs: 2, Args: map[string][]string{
		"livehub": {fmt.Sprintf("--live-max-streams=%d", most)},
	}})
	callers := make([]change, 5) // one alone has no right to all of a replica's streams
	for i := range callers {
		name := fmt.Sprintf("e2e-viewer-%d", i)
		callers[i] = bearer(makeAccount(t, name))
		bindAccount(t, fleet.ReaderRole, namespace, account(name))
		eventually(t, name+" may look", func() bool {
			return call(t, http.MethodGet, many.URL+"/v1/apps/sky-marshall/live", callers[i]).status == http.StatusOK
		})
	}
	eventually(t, "nobody else watches", func() bool { return watches(t, "pipelineruns") == 0 && watches(t, "taskruns") == 0 })

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	viewers := make([]*viewer, 2*most)
	contexts := make([]context.CancelFunc, len(viewers))
	for i := range viewers {
		var own context.Context
		own, contexts[i] = context.WithCancel(ctx)
		viewers[i] = newViewer(many.URL, "sky-marshall", callers[i%len(callers)])
		if err := viewers[i].connect(own, streamClient); err != nil {
			t.Fatal(i, err)
		}
		viewers[i].next(t, "snapshot")
	}
	for _, resource := range []string{"pipelineruns", "taskruns"} {
		if n := watches(t, resource); n != 2 {
			t.Errorf("the API server has %v watches of %s for %d viewers at two replicas", n, resource, len(viewers))
		}
	}
	a := call(t, http.MethodGet, many.URL+"/v1/apps/sky-marshall/live/stream", as("reader"))
	refused(t, a, 503, "GP-API-503")
	if hint := a.problem(t).Hint; !strings.Contains(hint, "poll GET /v1/apps/sky-marshall/live") {
		t.Errorf("the hint is %q", hint)
	}
	for _, l := range contexts[staying:] {
		l()
	}

	create(t, taskRuns, "TaskRun", namespace, "e2e-roll", nil)
	var looking sync.WaitGroup
	for _, v := range viewers[:staying] {
		looking.Go(func() { v.until(ctx, t, "last") })
	}
	many.Livehubs[0].Process.Signal(syscall.SIGTERM)
	for n := 0; ; n++ {
		annotate(t, taskRuns, namespace, "e2e-roll", fmt.Sprint(n))
		select {
		case <-many.Livehubs[0].Process.Done():
		case <-time.After(50 * time.Millisecond):
			continue
		}
		break
	}
	annotate(t, taskRuns, namespace, "e2e-roll", "last")
	looking.Wait()
	want, moved := inCluster(t, "sky-marshall"), 0
	for _, v := range viewers[:staying] {
		if !reflect.DeepEqual(v.shown, want) || v.snapshots != 1 || v.connects > 2 {
			t.Errorf("a viewer has %d objects of %d, after %d snapshots and %d connects", len(v.shown), len(want), v.snapshots, v.connects)
		}
		if v.connects == 2 && v.ended == `{"reason":"drain"}` {
			moved++
		}
	}
	if moved == 0 || moved == staying {
		t.Errorf("%d of %d viewers had to move", moved, staying)
	}
	leave()
	eventually(t, "the last watch ends", func() bool {
		return watches(t, "taskruns") == 0 && metric(t, many.Livehubs[1].Metrics, "glidepath_api_live_watches") == 0
	})
}

// until looks until the annotation has a value, and comes back when the stream
// is ended.
func (v *viewer) until(ctx context.Context, t *testing.T, value string) {
	t.Helper()
	for {
		e, err := v.step()
		switch {
		case err != nil || e.Type == "end":
			_ = v.body.Close()
			if e.Type != "end" {
				t.Errorf("a stream broke: %v", err)
				return
			}
			wait := time.NewTimer(v.Retry())
			<-wait.C
			if err := v.connect(ctx, streamClient); err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("coming back: %v", err)
				}
				return
			}
		case strings.Contains(string(e.Data), `"e2e":"`+value+`"`):
			return
		}
	}
}
