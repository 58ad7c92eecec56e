package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/standin/faultproxy"
	"hangar.io/glidepath/internal/standin/kubelet"
)

// follow begins to follow a log; cancelling ctx leaves it.
func follow(ctx context.Context, t *testing.T, path string) (*http.Response, *bufio.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, gw.URL+path+"?follow=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	as("reader")(r)
	resp, err := streamClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %d", resp.StatusCode)
	}
	return resp, bufio.NewReader(resp.Body)
}

// podReads gives the requests for logs that the API server got since mark, but
// for those of a last line.
func podReads(t *testing.T, mark devenv.AuditMark) []string {
	t.Helper()
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range events {
		if strings.Contains(e.RequestURI, "/log") && !strings.Contains(e.RequestURI, "tailLines=1") {
			found = append(found, e.RequestURI)
		}
	}
	return found
}

// rule: R014, R244, R245, R242
func TestALogIsTheOneThatTheClusterGives(t *testing.T) {
	x := newTask(t, "shop", "e2e-log")
	x.write("first", "", "\tthird  ", "\x1b[32mgreen\x1b[0m", "10%\r20%", "<script>alert(1)</script>")
	mark := auditMark(t)
	a := ok(t, get(t, x.path+"?pod=e2e-other&namespace=app-gate-api-cicd&container=prepare&previous=true&tailLines=1", as("reader")))
	if want := x.kubectl("step-test"); string(a.body) != want || !strings.HasPrefix(want, "2026-11-29T10:00:00.123000000Z first\n") {
		t.Errorf("got %q\nthe cluster gives %q", a.body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Etag": "", "Content-Encoding": "",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := ok(t, get(t, strings.Replace(x.path, "step-test", "prepare", 1), as("reader"))); string(got.body) != x.kubectl("prepare") {
		t.Errorf("an init container: %q", got.body)
	}
	expectLine(t, auditOf(t, a), line{"op": "getLiveLogs", "tier": "T0", "app": "shop", "status": 200.0, "decision": "allow", "caller": username(t, "reader")})
	before := redisKeys(t)
	x.write("more")
	if got := ok(t, get(t, x.path, as("reader"))); string(got.body) == string(a.body) {
		t.Error("the second answer is the first one's")
	}
	for _, key := range redisKeys(t) {
		if !slices.Contains(before, key) {
			t.Errorf("Redis has a new key: %s", key)
		}
	}
	reads := podReads(t, mark)
	ours := 0
	for _, uri := range reads {
		if !strings.Contains(uri, "/namespaces/app-shop-cicd/pods/e2e-log-pod/log") {
			t.Errorf("the cluster was asked for %s", uri)
		}
		if strings.Contains(uri, "follow=false") {
			ours++
		}
	}
	if ours != 3 {
		t.Errorf("three answers came of %d reads: %v", ours, reads)
	}
}

// rule: R246, R247, R395
func TestWhyThereIsNoLog(t *testing.T) {
	x := newTask(t, "shop", "e2e-none")
	x.write("a")
	at := func(taskRun, container string) string {
		return "/v1/apps/shop/live/taskruns/" + taskRun + "/logs/" + container
	}
	create(t, taskRuns, "TaskRun", x.namespace, "e2e-no-pod", nil)
	for name, tc := range map[string]struct {
		path   string
		status int
		rule   string
	}{
		"a container that the pod has not": {at("e2e-none", "step-other"), 400, "GP-API-400"},
		"a container that waits":           {at("e2e-none", "step-after"), 400, "GP-API-400"},
		"a container's name that is none":  {at("e2e-none", "Step"), 400, "GP-API-400"},
		"a container's name of 64":         {at("e2e-none", strings.Repeat("a", 64)), 400, "GP-API-400"},
		"a TaskRun's name that is none":    {at("e2e_none", "step-test"), 400, "GP-API-400"},
		"follow that is neither":           {at("e2e-none", "step-test") + "?follow=maybe", 400, "GP-API-400"},
		"no such TaskRun":                  {at("e2e-absent", "step-test"), 404, "GP-LIVE-404"},
		"a TaskRun without a pod":          {at("e2e-no-pod", "step-test"), 404, "GP-LIVE-404"},
		"a TaskRun of another app":         {"/v1/apps/gate-api/live/taskruns/e2e-none/logs/step-test", 404, "GP-LIVE-404"},
	} {
		t.Run(name, func(t *testing.T) {
			a := get(t, tc.path, as("reader"))
			refused(t, a, tc.status, tc.rule)
			if tc.status == 404 && !strings.Contains(a.problem(t).Hint, "archived") {
				t.Errorf("the hint is %q", a.problem(t).Hint)
			}
		})
	}
	x.report("e2e-gone-pod")
	refused(t, get(t, x.path, as("reader")), 404, "GP-LIVE-404")
	// A pod of the namespace that is not the TaskRun's.
	other := newTask(t, "shop", "e2e-other")
	other.write("secret")
	x.report(other.pod)
	refused(t, get(t, x.path, as("reader")), 404, "GP-LIVE-404")
	x.report(x.pod)
	ok(t, get(t, x.path, as("reader")))
	// One that no node has.
	x.removePod(t.Context())
	refused(t, get(t, x.path, as("reader")), 404, "GP-LIVE-404")
}

// rule: R395
func TestNamesThatAreNoneReachNoCluster(t *testing.T) {
	mark := auditMark(t)
	for _, path := range []string{"/v1/apps/shop/live/taskruns/Bad/logs/step-a", "/v1/apps/shop/live/taskruns/ok/logs/Bad", "/v1/apps/shop/live/taskruns/ok/logs/a.b"} {
		refused(t, get(t, path, as("reader")), 400, "GP-API-400")
	}
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Resource == "taskruns" && e.Verb == "get" {
			t.Errorf("the cluster was asked for %s", e.RequestURI)
		}
	}
}

// rule: R240
func TestALogNeedsTheRightToLogsHereAndNoneInTheCluster(t *testing.T) {
	x := newTask(t, "gate-api", "e2e-right")
	x.write("a")
	ok(t, get(t, x.path, as("app-reader")))
	if accessReview(t, username(t, "app-reader"), "get", "", "pods/log", x.namespace) {
		t.Error("the sample reader may read pods' logs itself, so this shows nothing")
	}
	refused(t, get(t, x.path, as("stranger")), 403, "GP-AUTHZ-001")
	refused(t, get(t, x.path), 401, "GP-AUTH-001")
}

func TestAFollowedLogComesAtOnceAndEndsWithItsContainer(t *testing.T) {
	x := newTask(t, "shop", "e2e-follow")
	resp, lines := follow(t.Context(), t, x.path)
	for range 5 {
		x.log.Append(wroteAt, []byte("a line"))
		if got, err := lines.ReadString('\n'); err != nil || got != "2026-11-29T10:00:00.123000000Z a line\n" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	x.end()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	id := resp.Header.Get("X-Glidepath-Trace-Id")
	eventually(t, "the line of the followed log", func() bool {
		return len(linesAfter(t, func(l line) bool { return l["traceId"] == id && l["status"] == 200.0 && l["error"] == nil })) == 1
	})
}

// Each fault of a node: whatever came before it, the answer never looks whole.
func TestWhatGoesWrongAtTheNode(t *testing.T) {
	x := newTask(t, "shop", "e2e-faults")
	x.write("one", "two", "three")
	whole := x.kubectl("step-test")
	for name, tc := range map[string]struct {
		fault  kubelet.Fault
		status int // of an answer that is an error; 0 is one that is broken off
	}{
		"a status of an error":         {kubelet.Fault{Status: 500, Body: "secret"}, 502},
		"the log is lost":              {kubelet.Fault{Sentence: true}, 502},
		"the log is lost meanwhile":    {kubelet.Fault{Sentence: true, Skip: 1}, 502},
		"the pod is forgotten":         {kubelet.Fault{Status: 404, Body: "secret"}, 404},
		"the container is":             {kubelet.Fault{Status: 400, Body: "secret"}, 400},
		"cut in its first line":        {kubelet.Fault{Cut: 40, Skip: 1}, 0},
		"cut between two lines":        {kubelet.Fault{Cut: 2 * len("2026-11-29T10:00:00.123000000Z one\n"), Skip: 1}, 0},
		"cut in the last line":         {kubelet.Fault{Cut: len(whole) - 3, Skip: 1}, 0},
		"cut before the last line end": {kubelet.Fault{Cut: len(whole) - 1, Skip: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fault := tc.fault
			fault.Pod = x.pod
			x.node.SetFaults(fault)
			_, a, err := try(t.Context(), http.MethodGet, gw.URL+x.path, as("reader"))
			switch {
			case tc.status == 0:
				if err == nil || a.status != http.StatusOK || !strings.HasPrefix(whole, string(a.body)) {
					t.Errorf("got %d %q, %v", a.status, a.body, err)
				}
			case err != nil || a.status != tc.status || strings.Contains(string(a.body), "secret"):
				t.Errorf("got %d %q, %v; want %d", a.status, a.body, err, tc.status)
			}
		})
	}
	x.node.SetFaults(kubelet.Fault{Slow: 100 * time.Millisecond})
	if a := ok(t, get(t, x.path, as("reader"))); string(a.body) != whole {
		t.Errorf("a slow node: %q", a.body)
	}
	x.node.Down()
	refused(t, get(t, x.path, as("reader")), 502, "GP-API-502")
	if err := x.node.Up(); err != nil {
		t.Fatal(err)
	}
	x.node.SetFaults()
	if a := ok(t, get(t, x.path, as("reader"))); string(a.body) != whole {
		t.Errorf("back: %q", a.body)
	}
}

func TestALogThatIsFollowedIsBrokenOffWithItsNode(t *testing.T) {
	x := newTask(t, "shop", "e2e-node-away")
	x.write("one")
	_, lines := follow(t.Context(), t, x.path)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	x.node.Down()
	defer func() {
		if err := x.node.Up(); err != nil {
			t.Error(err)
		}
	}()
	if rest, err := io.ReadAll(lines); err == nil {
		t.Errorf("it looks whole: %q", rest)
	}
}

func TestTheAPIServerAwayOrSlowIsSaid(t *testing.T) {
	x := newTask(t, "shop", "e2e-api")
	x.write("one")
	defer gw.Faults.Clear()
	for name, path := range map[string]string{
		"the TaskRun": "/apis/tekton.dev/v1/namespaces/app-shop-cicd/taskruns/e2e-api",
		"the pod":     "/api/v1/namespaces/app-shop-cicd/pods/e2e-api-pod",
		"the log":     "/api/v1/namespaces/app-shop-cicd/pods/e2e-api-pod/log",
	} {
		for how, fault := range map[string]faultproxy.Fault{"cut": {Abort: true}, "500": {Status: 500, Body: "secret"}} {
			t.Run(name+" "+how, func(t *testing.T) {
				fault.Path = path
				gw.Faults.Set(fault)
				a := get(t, x.path, as("reader"))
				refused(t, a, 502, "GP-API-502")
				if strings.Contains(string(a.body), "secret") {
					t.Errorf("got %s", a.body)
				}
			})
		}
	}
}

func TestAnyBytesComeAsTheContainerWroteThem(t *testing.T) {
	x := newTask(t, "shop", "e2e-bytes")
	odd := "\xff\xfe caf\xe9 \x00 \xed\xa0\x80 half a rune \xe2\x82"
	long := strings.Repeat("0123456789abcdef", 1<<16) // a line of 1 MiB
	x.write(odd)
	a := ok(t, get(t, x.path, as("reader")))
	if string(a.body) != "2026-11-29T10:00:00.123000000Z "+odd+"\n" {
		t.Errorf("got %q", a.body)
	}
	x.log.Append(wroteAt, []byte(long))
	if a := ok(t, get(t, x.path, as("reader"))); !bytes.HasSuffix(a.body, []byte(long+"\n")) {
		t.Errorf("got %d bytes", len(a.body))
	}
}

func TestARestartedContainersLogIsItsOwn(t *testing.T) {
	x := newTask(t, "shop", "e2e-restart")
	x.write("of the first")
	_, lines := follow(t.Context(), t, x.path)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	again := x.node.NewLog(x.id("again"))
	again.Append(wroteAt.Add(time.Hour), []byte("of the second"))
	x.log.End()
	x.status(corev1.ContainerStatus{
		Name: "step-test", ContainerID: x.id("again"), RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: x.id("step-test")}},
	})
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("at the end of the first: %q, %v", rest, err)
	}
	if a := ok(t, get(t, x.path, as("reader"))); !strings.HasSuffix(string(a.body), "of the second\n") || strings.Contains(string(a.body), "first") {
		t.Errorf("got %q", a.body)
	}
}

func TestALogThatIsLeftIsClosedAtItsSource(t *testing.T) {
	x := newTask(t, "shop", "e2e-left")
	x.write("one")
	ctx, leave := context.WithCancel(t.Context())
	for range 5 {
		_, lines := follow(ctx, t, x.path)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if n := metric(t, gw.Livehubs[0].Metrics, "glidepath_livehub_logs"); n != 5 {
		t.Errorf("%v logs are being sent, want 5", n)
	}
	leave()
	eventually(t, "the end of what was left", func() bool { return metric(t, gw.Livehubs[0].Metrics, "glidepath_livehub_logs") == 0 })
	eventually(t, "the end of its reading at the node", func() bool { return x.node.UnderWay() == 0 })
}

// A log of hundreds of megabytes needs no more memory than a small one.
func TestALogOfAnySizeNeedsTheSameMemory(t *testing.T) {
	const megabytes = 200
	x := newTask(t, "shop", "e2e-large")
	x.write(strings.Repeat("x", 64<<10))
	x.log.Repeat(megabytes*16 - 1)
	ok(t, get(t, strings.Replace(x.path, "step-test", "prepare", 1), as("reader"))) // warm
	before := metric(t, gw.Livehubs[0].Metrics, "process_resident_memory_bytes")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gw.URL+x.path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	as("reader")(r)
	resp, err := streamClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	type read struct {
		n   int64
		err error
	}
	done := make(chan read, 1)
	go func() {
		n, err := io.Copy(io.Discard, resp.Body)
		done <- read{n, err}
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var most float64
	var got read
	for got == (read{}) {
		select {
		case got = <-done:
		case <-tick.C:
			most = max(most, metric(t, gw.Livehubs[0].Metrics, "process_resident_memory_bytes"))
		}
	}
	if got.err != nil || got.n < megabytes<<20 {
		t.Fatalf("got %d bytes, %v", got.n, got.err)
	}
	if grown := (most - before) / (1 << 20); grown > 64 {
		t.Errorf("livehub grew by %.0f MiB over a log of %d MiB", grown, megabytes)
	}
}

func redisKeys(t *testing.T) []string {
	t.Helper()
	o, err := redis.ParseURL(gw.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(o)
	defer func() { _ = db.Close() }()
	keys, err := db.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// metric gives the value of a gauge.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	family, there := scrape(t, url)[name]
	if !there {
		t.Fatalf("%s has no %s", url, name)
	}
	return family.GetMetric()[0].GetGauge().GetValue()
}

func auditMark(t *testing.T) devenv.AuditMark {
	t.Helper()
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mark
}
