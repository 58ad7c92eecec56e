package board_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hangar.io/glidepath/internal/chromium"
	"hangar.io/glidepath/xds/board"
)

// api is the part of the API that the page asks: one app's stream, which a test
// writes, and one log.
type api struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	asked  []*http.Request
	stream chan string   // pieces of the stream; "" ends one connection
	log    chan string   // pieces of the log; "" ends it, "cut" breaks it off
	policy chan struct{} // closed with the test
}

const secret = "a-token-that-nobody-keeps"

func startAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, stream: make(chan string), log: make(chan string), policy: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /board", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", board.Policy())
		_, _ = w.Write(board.HTML())
	})
	mux.HandleFunc("GET /v1/apps/shop/live/stream", a.pieces("text/event-stream", a.stream))
	mux.HandleFunc("GET /v1/apps/shop/live/taskruns/{task}/logs/{container}", a.pieces("text/plain; charset=utf-8", a.log))
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r.Clone(context.WithoutCancel(r.Context())))
		a.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(a.policy); a.server.CloseClientConnections(); a.server.Close() })
	return a
}

// pieces answers with what a test sends.
func (a *api) pieces(contentType string, from chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Glidepath-Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"rule":"GP-AUTH-002","message":"the token was not accepted"}`)
			return
		}
		w.Header().Set("Content-Type", contentType)
		control := http.NewResponseController(w)
		_ = control.Flush()
		for {
			select {
			case piece := <-from:
				switch piece {
				case "":
					return
				case "cut":
					panic(http.ErrAbortHandler) //nolint:forbidigo // net/http has no other way to break an answer off
				}
				_, _ = io.WriteString(w, piece)
				_ = control.Flush()
			case <-r.Context().Done():
				return
			case <-a.policy:
				return
			}
		}
	}
}

func (a *api) send(to chan string, piece string) {
	a.t.Helper()
	select {
	case to <- piece:
	case <-time.After(30 * time.Second):
		a.t.Fatalf("nobody takes %.60q", piece)
	}
}

// event writes an event of the stream.
func (a *api) event(id, kind string, data any) {
	a.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		a.t.Fatal(err)
	}
	a.send(a.stream, fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, kind, raw))
}

func (a *api) requests(path string) []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*http.Request
	for _, r := range a.asked {
		if strings.HasPrefix(r.URL.Path, path) {
			found = append(found, r)
		}
	}
	return found
}

type object = map[string]any

// run is a PipelineRun, whose condition says True, False or Unknown, or nothing.
func run(name, condition string) object {
	o := object{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": object{"name": name, "resourceVersion": name + condition, "creationTimestamp": "2026-11-29T10:00:00Z"}}
	if condition != "" {
		reason := map[string]string{"True": "Succeeded", "False": "Failed", "Unknown": "Running"}[condition]
		o["status"] = object{
			"startTime":  time.Now().UTC().Add(-3 * time.Minute).Format(time.RFC3339),
			"conditions": []object{{"type": "Succeeded", "status": condition, "reason": reason}},
		}
	}
	return o
}

// task is a TaskRun of a run with a step that runs.
func task(name, of, step string) object {
	return object{
		"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
		"metadata": object{"name": name, "resourceVersion": "1", "labels": object{"tekton.dev/pipelineRun": of}},
		"status":   object{"startTime": "2026-11-29T10:00:00Z", "steps": []object{{"name": step, "container": "step-" + step, "running": object{}}}},
	}
}

// signIn pastes a token.
func signIn(p *chromium.Page, token string) {
	p.Fill("#app", "shop")
	p.Fill("#token", token)
	p.Click("#open button")
}

// in says that a column has exactly these runs.
func in(column string, names ...string) string {
	raw, err := json.Marshal(names)
	if err != nil {
		panic(err) //nolint:forbidigo // names are strings
	}
	return fmt.Sprintf("JSON.stringify([...document.querySelectorAll('#%s > .run')].map(e => e.dataset.name).sort()) === %q", column, raw)
}

func TestRunsAppearMoveAndGo(t *testing.T) {
	a := startAPI(t)
	p := chromium.Open(t, a.server.URL+"/board")
	signIn(p, secret)
	a.event("1-1", "snapshot", object{"pipelineRuns": []object{run("a", "Unknown"), run("b", "")}, "taskRuns": []object{task("a-unit", "a", "test")}})
	p.Becomes(in("running", "a"))
	p.Becomes(in("waiting", "b"))
	a.send(a.stream, ": ping\n\n")
	a.event("2-1", "change", object{"type": "upsert", "kind": "PipelineRun", "name": "a", "object": run("a", "True")})
	p.Becomes(in("good", "a"))
	p.Becomes(in("running") + " || document.querySelectorAll('#running > .run').length === 0")
	a.event("3-1", "change", object{"type": "upsert", "kind": "PipelineRun", "name": "b", "object": run("b", "False")})
	p.Becomes(in("bad", "b"))
	a.event("4-1", "change", object{"type": "delete", "kind": "PipelineRun", "name": "b"})
	p.Becomes("document.querySelectorAll('#bad > .run').length === 0")
	// The connection ends: the next one resumes where this one stopped.
	a.send(a.stream, "retry: 10\n\n")
	a.send(a.stream, "")
	a.event("5-1", "change", object{"type": "upsert", "kind": "PipelineRun", "name": "c", "object": run("c", "Unknown")})
	p.Becomes(in("running", "c"))
	p.Becomes(in("good", "a"))
	streams := a.requests("/v1/apps/shop/live/stream")
	if last := streams[len(streams)-1]; last.Header.Get("Last-Event-ID") != "4-1" {
		t.Errorf("it resumed from %q", last.Header.Get("Last-Event-ID"))
	}
	// What cannot be resumed begins anew.
	a.event("6-1", "reset", object{"reason": "gone"})
	a.event("7-1", "snapshot", object{"pipelineRuns": []object{run("d", "Unknown")}, "taskRuns": []object{}})
	p.Becomes(in("running", "d"))
	p.Becomes("document.querySelectorAll('.run').length === 1")
	// A right that ends ends the page, with all that it held.
	a.event("8-1", "end", object{"reason": "revoked"})
	a.send(a.stream, "")
	p.Becomes("document.querySelectorAll('.run').length === 0 && document.getElementById('status').textContent.includes('revoked')")
	p.Quiet()
}

func TestALogIsFollowedAndACutOneIsSaid(t *testing.T) {
	a := startAPI(t)
	p := chromium.Open(t, a.server.URL+"/board")
	signIn(p, secret)
	a.event("1-1", "snapshot", object{"pipelineRuns": []object{run("a", "Unknown")}, "taskRuns": []object{task("a-unit", "a", "test")}})
	p.Becomes("document.querySelector('.step') !== null")
	p.Click(".step")
	a.send(a.log, "2026-11-29T10:00:01.000000000Z + go test\n2026-11-29T10:00:02.00")
	p.Becomes("document.querySelectorAll('#lines > div').length === 1")
	a.send(a.log, "0000000Z \x1b[32mok\x1b[0m <b>bold</b>\n")
	p.Becomes("document.querySelectorAll('#lines > div').length === 2")
	if got := chromium.Eval[string](p, "document.getElementById('lines').textContent"); got != "10:00:01+ go test10:00:02ok <b>bold</b>" {
		t.Errorf("the log is %q", got)
	}
	a.send(a.log, "")
	p.Becomes("document.getElementById('log-state').textContent === 'ended'")
	p.Click(".step")
	a.send(a.log, "2026-11-29T10:00:01.000000000Z half\n")
	a.send(a.log, "cut")
	p.Becomes("document.getElementById('log-state').textContent.startsWith('broken off')")
	for _, r := range a.requests("/v1/apps/shop/live/taskruns/") {
		if r.URL.Path != "/v1/apps/shop/live/taskruns/a-unit/logs/step-test" || r.URL.RawQuery != "follow=true" {
			t.Errorf("it asked for %s", r.URL)
		}
	}
}

func TestHostileNamesAndLogsAreText(t *testing.T) {
	a := startAPI(t)
	p := chromium.Open(t, a.server.URL+"/board")
	signIn(p, secret)
	const hostile = `<img src=x onerror="window.owned=1"><script>window.owned=1</script><svg onload=window.owned=1>"'` + "\u202e"
	bad := run(hostile, "False")
	bad["status"].(object)["conditions"].([]object)[0]["reason"] = hostile
	ofBad := task(hostile, hostile, hostile)
	ofBad["status"].(object)["steps"].([]object)[0]["container"] = "../../../whoami?x="
	a.event("1-1", "snapshot", object{"pipelineRuns": []object{bad, run("__proto__", "True"), run("constructor", "")}, "taskRuns": []object{ofBad}})
	p.Becomes("document.querySelectorAll('.run').length === 3")
	p.Click(".step")
	p.Becomes("document.getElementById('log-title').textContent.includes('onerror')")
	if chromium.Eval[bool](p, "'owned' in window") || chromium.Eval[int](p, "document.querySelectorAll('main img, main svg, main script, main iframe').length") != 0 {
		t.Error("a name became markup")
	}
	for _, r := range a.requests("/v1/whoami") {
		t.Errorf("a name led to %s", r.URL)
	}
	if chromium.Eval[string](p, "location.pathname") != "/board" {
		t.Error("a name led away")
	}
}

func TestTheTokenIsInMemoryAlone(t *testing.T) {
	a := startAPI(t)
	p := chromium.Open(t, a.server.URL+"/board")
	signIn(p, secret)
	a.event("1-1", "snapshot", object{"pipelineRuns": []object{run("a", "Unknown")}, "taskRuns": []object{}})
	p.Becomes(in("running", "a"))
	kept := chromium.Eval[string](p, `JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, document.documentElement.outerHTML,
		document.getElementById("token").value, Object.keys(window).map(k => { try { return JSON.stringify(window[k]) } catch { return "" } })])`)
	if strings.Contains(kept, secret) {
		t.Error("the token is somewhere in the page")
	}
	for _, r := range a.requests("/") {
		if strings.Contains(r.URL.String(), secret) || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("%s came with %v", r.URL, r.Header)
		}
	}
	p.Click("#leave")
	p.Becomes("document.querySelectorAll('.run').length === 0 && !document.getElementById('open').hidden")
	// A page that is loaded again knows nothing.
	p.Do(chromedp.Reload())
	if chromium.Eval[string](p, "document.getElementById('token').value") != "" {
		t.Error("the field has it again")
	}
	p.Quiet()
	// One that is not accepted is not tried again.
	asked := len(a.requests("/v1/apps/shop/live/stream"))
	signIn(p, "another")
	p.Becomes("document.getElementById('status').textContent.includes('GP-AUTH-002')")
	p.Becomes("!document.getElementById('open').hidden && document.getElementById('columns').hidden")
	if again := len(a.requests("/v1/apps/shop/live/stream")); again != asked+1 {
		t.Errorf("it was tried %d times", again-asked)
	}
}

// TestTheScreenshot writes the picture of the README where BOARD_SCREENSHOT
// says.
func TestTheScreenshot(t *testing.T) {
	file := os.Getenv("BOARD_SCREENSHOT")
	a := startAPI(t)
	p := chromium.Open(t, a.server.URL+"/board")
	signIn(p, secret)
	done := task("ci-142-lint", "ci-142", "vet")
	done["status"] = object{"startTime": "2026-11-29T10:00:00Z", "conditions": []object{{"type": "Succeeded", "status": "True"}}, "steps": []object{{"name": "vet", "container": "step-vet", "terminated": object{"exitCode": 0}}}}
	a.event("1-1", "snapshot", object{
		"pipelineRuns": []object{run("ci-142", "Unknown"), run("ci-143", ""), run("release-88", "True"), run("ci-141", "False")},
		"taskRuns":     []object{done, task("ci-142-unit", "ci-142", "test"), task("ci-142-image", "ci-142", "build")},
	})
	p.Becomes("document.querySelectorAll('.step').length === 3")
	p.Click(`[aria-label="Log of step test of ci-142-unit"]`)
	for i := range 6 {
		a.send(a.log, fmt.Sprintf("2026-11-29T10:00:%02d.000000000Z ok  \thangar.io/shop/cart/%d\t0.%d12s\n", 10+i, i, i))
	}
	p.Becomes("document.querySelectorAll('#lines > div').length === 6")
	picture := p.Picture()
	if len(picture) == 0 {
		t.Fatal("an empty picture")
	}
	if file != "" {
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
