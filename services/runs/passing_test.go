package runs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

// endless is an archive whose one log is made as it is read.
type endless struct {
	*archived

	size  int
	fault error // behind it
	read  func()

	mu     sync.Mutex
	opened int
	closed chan struct{} // gets one for each log that is closed
}

const aLine = "[test] a line of a log that goes on and on and says the same all the time\n"

func (e *endless) Log(ctx context.Context, namespace, result, uid string) (io.ReadCloser, error) {
	if err := e.ask("log %s/%s/%s", namespace, result, uid); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	return &endlessLog{archive: e, ctx: ctx, left: e.size}, nil
}

type endlessLog struct {
	archive *endless
	ctx     context.Context
	left    int
}

func (l *endlessLog) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if l.left == 0 {
		if l.archive.fault != nil {
			return 0, l.archive.fault
		}
		return 0, io.EOF
	}
	p = p[:min(len(p), l.left)]
	n := 0
	for n < len(p) {
		n += copy(p[n:], aLine[(l.archive.size-l.left+n)%len(aLine):])
	}
	if l.left -= n; l.archive.read != nil {
		l.archive.read()
	}
	return n, nil
}

func (l *endlessLog) Close() error {
	l.archive.closed <- struct{}{}
	return nil
}

// endlessly gives a world's only TaskRun a log of a size, which is known to be
// too large to be kept if it is.
func endlessly(t *testing.T, size int, known bool) (*world, *endless, *httptest.Server) {
	t.Helper()
	w := stocked(t)
	e := &endless{archived: w.archive, size: size, closed: make(chan struct{}, 100)}
	w.server.archive = e
	if known {
		at := logPlace(logName{scopeOfShop, uidOf(1), "run-1-task-1"})
		at.kind = tooLarge
		if err := w.server.documents.put(t.Context(), at, time.Hour, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	edge := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w.mux().ServeHTTP(to, r.WithContext(identity.NewContext(r.Context(), about("getRunLogs"))))
	}))
	t.Cleanup(edge.Close)
	return w, e, edge
}

// fetch reads the log of a server to where it ends.
func fetch(ctx context.Context, edge *httptest.Server) (status int, size int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, edge.URL+oneLog, nil)
	if err != nil {
		return 0, 0, err
	}
	resp, err := edge.Client().Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	size, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, size, err
}

// rule: R011
func TestALogThatIsTooLargeToBeKeptIsPassedOnWhole(t *testing.T) {
	const size, most = 70 << 20, 24 << 20
	w, archive, edge := endlessly(t, size, false)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, peak, reads := heap(), uint64(0), 0
	archive.read = func() {
		if reads++; reads%500 == 0 {
			peak = max(peak, heap())
		}
	}
	for call, opens := range []int{2, 1} { // that it is too large is found out once
		archive.opened = 0
		if status, n, err := fetch(t.Context(), edge); status != http.StatusOK || n != size || err != nil {
			t.Fatalf("call %d: got %d with %d bytes, %v", call, status, n, err)
		}
		if archive.opened != opens {
			t.Errorf("call %d: the log was opened %d times", call, archive.opened)
		}
	}
	if grown := int64(peak) - int64(before); reads < 500 || grown > most {
		t.Errorf("it takes %d bytes of memory", grown)
	}
	got := w.getLog(uidOf(2), "run-1-task-1")
	w.refused(got, problem.NotFound)
}

func TestALogThatIsPassedOnIsTextThatNobodyKeeps(t *testing.T) {
	w, _, edge := endlessly(t, 100_000, true)
	resp, err := edge.Client().Get(edge.URL + oneLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if want := strings.Repeat(aLine, 100_000/len(aLine)+1)[:100_000]; err != nil || string(body) != want {
		t.Errorf("got %d bytes, %v", len(body), err)
	}
	for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "ETag": ""} {
		if h := resp.Header.Get(name); h != want {
			t.Errorf("%s is %q", name, h)
		}
	}
	if got := counted(t, w.server.passed.WithLabelValues("whole")); got != 1 {
		t.Errorf("%v are counted", got)
	}
}

func TestALogThatBreaksOffWhileItIsPassedOnDoesNotLookWhole(t *testing.T) {
	w, archive, edge := endlessly(t, 100_000, true)
	archive.fault = errors.New("the archive broke off")
	if status, n, err := fetch(t.Context(), edge); status != http.StatusOK || err == nil {
		t.Errorf("got %d with %d bytes, %v", status, n, err)
	}
	if got := counted(t, w.server.passed.WithLabelValues("cut")); got != 1 {
		t.Errorf("%v are counted", got)
	}
	// One that cannot be begun is a failure that says so.
	for rule, fault := range map[problem.Rule]func(){
		problem.SourceFailed: func() { archive.archived.fault = errors.New("away") },
		problem.LogNotFound:  func() { archive.archived.fault = results.ErrNoLog },
	} {
		fault()
		if rule == problem.LogNotFound {
			w.server.archive = &lost{archive}
			archive.archived.fault = nil
		}
		w.refused(w.getLog(uidOf(1), "run-1-task-1"), rule)
		w.server.archive = archive
	}
	if w.server.passing.begun != 0 || len(w.server.passing.now) != 0 {
		t.Error("a turn is not given back")
	}
}

// lost is an archive that has no log any more.
type lost struct{ *endless }

func (*lost) Log(context.Context, string, string, string) (io.ReadCloser, error) {
	return nil, results.ErrNoLog
}

func TestALogIsNotReadForACallerWhoLeft(t *testing.T) {
	w, archive, edge := endlessly(t, 1<<40, true)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	started := make(chan struct{})
	archive.read = sync.OnceFunc(func() { close(started) })
	go func() {
		_, _, err := fetch(ctx, edge)
		left <- err
	}()
	<-started
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-archive.closed
	edge.Close() // waits for the call
	if len(w.server.passing.now) != 0 {
		t.Error("its turn is not given back")
	}
}

func TestFewLogsArePassedOnAtOnce(t *testing.T) {
	w, archive, edge := endlessly(t, 1000, true)
	w.server.passing = newTurns(1, 0, 1)
	done, err := w.server.passing.begin(t.Context(), "another app", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	w.refused(w.getLog(uidOf(1), "run-1-task-1"), problem.Busy)
	if archive.opened != 0 {
		t.Error("it is opened")
	}
	done()
	if status, n, err := fetch(t.Context(), edge); status != http.StatusOK || n != 1000 || err != nil {
		t.Errorf("afterwards: got %d with %d bytes, %v", status, n, err)
	}
}
