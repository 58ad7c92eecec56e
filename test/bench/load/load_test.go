package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/test/bench/load"
)

func TestMain(m *testing.M) {
	// They wait for connections and addresses to be old, and look only now and then whether they are still wanted.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

func server(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestEveryRequestIsCountedAndSentAsItIsSaid(t *testing.T) {
	var got atomic.Int64
	addr := server(t, func(w http.ResponseWriter, r *http.Request) {
		got.Add(1)
		if r.Method != "POST" || r.RequestURI != "/a?b=c" || r.Header.Get("Authorization") != "Bearer x" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	r := load.Run(t.Context(), load.Spec{
		Method: "POST", Addr: addr, Path: "/a?b=c", Headers: map[string]string{"Authorization": "Bearer x"},
		Connections: 3, Duration: 50 * time.Millisecond, Status: 200,
	})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if r.Sent != int(got.Load()) || r.Answered != r.Sent-3 || r.Answered < 3 {
		t.Errorf("%d arrived, of %d sent %d count", got.Load(), r.Sent, r.Answered)
	}
	if r.P50 <= 0 || r.P99 < r.P50 || r.PerSecond() <= 0 || r.Elapsed < 50*time.Millisecond {
		t.Errorf("p50 %v, p99 %v, %v a second in %v", r.P50, r.P99, r.PerSecond(), r.Elapsed)
	}
}

func TestAnAnswerOfAnotherStatusIsAFailure(t *testing.T) {
	addr := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	r := load.Run(t.Context(), load.Spec{Method: "GET", Addr: addr, Path: "/", Connections: 2, Duration: 20 * time.Millisecond, Status: 200})
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "status 503") || r.Answered != 0 || r.Failures["status 503"] != r.Sent {
		t.Errorf("got %v, %+v", err, r)
	}
}

func TestNobodyThereIsAFailure(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	r := load.Run(t.Context(), load.Spec{Method: "GET", Addr: strings.TrimPrefix(s.URL, "http://"), Path: "/", Connections: 1, Status: 200})
	if r.Err() == nil || r.Answered != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	addr := server(t, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := load.Run(ctx, load.Spec{Method: "GET", Addr: addr, Path: "/", Connections: 1, Duration: time.Hour, Status: 200})
	if r.Sent != 1 {
		t.Errorf("%d requests after the end", r.Sent)
	}
}

func TestTheProcessTakesItsTaskFromStandardInput(t *testing.T) {
	addr := server(t, func(http.ResponseWriter, *http.Request) {})
	task, err := json.Marshal(load.Spec{Method: "GET", Addr: addr, Path: "/", Connections: 1, Duration: time.Millisecond, Status: 200})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := load.Main(t.Context(), bytes.NewReader(task), &out); err != nil {
		t.Fatal(err)
	}
	var r load.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Sent < 1 || r.Err() != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := load.Main(t.Context(), strings.NewReader("no task"), &out); err == nil {
		t.Error("it did something without a task")
	}
}
