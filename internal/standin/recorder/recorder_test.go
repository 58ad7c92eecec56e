package recorder_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/standin/recorder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *recorder.Recorder {
	t.Helper()
	r, err := recorder.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Some", "thing")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestARequestIsRememberedAsItArrivedAndAnswered(t *testing.T) {
	r := start(t)
	status, answer := post(t, "http://"+r.Addr+"/a%20b?x=1&x=2", "hello")
	if status != 200 || answer != `{"recorded":true}` {
		t.Errorf("answered %d %q", status, answer)
	}
	got := r.Requests()
	if len(got) != 1 {
		t.Fatalf("remembered %d requests, want one", len(got))
	}
	if q := got[0]; q.Method != http.MethodPost || q.URI != "/a%20b?x=1&x=2" || q.Host != r.Addr || q.Header.Get("X-Some") != "thing" || string(q.Body) != "hello" {
		t.Errorf("remembered %+v", q)
	}
	r.Reset()
	if got := r.Requests(); len(got) != 0 {
		t.Errorf("after Reset there are %d", len(got))
	}
}

func TestAHandlerCanAnswerInstead(t *testing.T) {
	r := start(t)
	r.Answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if status, _ := post(t, "http://"+r.Addr, ""); status != http.StatusTeapot {
		t.Errorf("answered %d", status)
	}
	r.Answer(nil)
	if status, _ := post(t, "http://"+r.Addr, ""); status != 200 {
		t.Errorf("then answered %d", status)
	}
	if got := r.Requests(); len(got) != 2 {
		t.Errorf("remembered %d requests, want two", len(got))
	}
}

func TestAwaitReturnsWithTheRequestOrWithItsContext(t *testing.T) {
	r := start(t)
	done := make(chan error, 1)
	go func() {
		got, err := r.Await(t.Context(), 1)
		if err == nil && len(got) != 1 {
			err = errors.New("not one request")
		}
		done <- err
	}()
	post(t, "http://"+r.Addr, "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Await(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
