package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// answer is what a call got.
type answer struct {
	status     int
	rule       string // of a refusal
	body       []byte // as it is without its encoding
	sent, came time.Time
}

// errBroke says that an answer broke off, or that there was none: nobody takes that for an answer.
var errBroke = errors.New("the answer broke off")

// caller asks one thing after the other.
type caller struct {
	url, token string
	http       *http.Client
	rand       *rand.Rand
	had        map[string]answer // what it was answered, by entity tag
	patient    bool              // it never leaves before it is answered
}

func newCaller(url, token string, seed uint64) *caller {
	return &caller{
		url: url, token: token, rand: rand.New(rand.NewPCG(seed, 2)), had: map[string]answer{},
		http: &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: deadline},
	}
}

// deadline is when a call that is not answered counts as one that never will be, on however slow a machine.
const deadline = 60 * time.Second

// get asks for a path. The caller may say what it has, and take it compressed.
func (c *caller) get(ctx context.Context, path string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if c.rand.IntN(2) == 0 {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	for tag := range c.had { // any of them
		r.Header.Set("If-None-Match", tag)
		break
	}
	a := answer{sent: time.Now()}
	resp, err := c.http.Do(r)
	if err != nil {
		return a, broke(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	a.came = time.Now()
	if err != nil {
		return a, broke(ctx, err)
	}
	return c.read(a, resp, raw)
}

// expects is an error when a path is answered with another status.
func (c *caller) expects(ctx context.Context, path string, status int) error {
	a, err := c.get(ctx, path)
	if err == nil && a.status != status {
		err = fmt.Errorf("%s is answered %d: %.200s", path, a.status, a.body)
	}
	return err
}

// broke says what became of a call that has no answer. Its own deadline is none.
func broke(ctx context.Context, err error) error {
	if timeout := (interface{ Timeout() bool })(nil); errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
		return fmt.Errorf("no answer within %s: %w", deadline, err)
	}
	return fmt.Errorf("%w: %w", errBroke, err)
}

func (c *caller) read(a answer, resp *http.Response, raw []byte) (answer, error) {
	tag := resp.Header.Get("ETag")
	if a.status = resp.StatusCode; a.status == http.StatusNotModified {
		had, ok := c.had[tag]
		if !ok {
			return a, fmt.Errorf("nothing has changed since %q, which it never had", tag)
		}
		a.status, a.body = http.StatusOK, had.body
		return a, nil
	}
	a.body = raw
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return a, fmt.Errorf("what is called gzip: %w", err)
		}
		if a.body, err = io.ReadAll(z); err != nil {
			return a, fmt.Errorf("what is called gzip: %w", err)
		}
	}
	if a.status != http.StatusOK {
		var refusal struct{ Rule, Message string }
		if err := json.Unmarshal(a.body, &refusal); err != nil || refusal.Rule == "" || refusal.Message == "" {
			return a, fmt.Errorf("answered %d without a rule: %.200s", a.status, a.body)
		}
		a.rule = refusal.Rule
		return a, nil
	}
	const most = 20
	if tag != "" {
		if len(c.had) >= most {
			clear(c.had)
		}
		c.had[tag] = a
	}
	return a, nil
}

// ask asks questions until ctx ends.
func (w *world) ask(ctx context.Context, c *caller) {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		_, _ = w.put(ctx, c, w.pick(c.rand)) // what is wrong was noted
		pause := time.NewTimer(time.Duration(c.rand.IntN(int(60 * time.Millisecond))))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// put puts a question. Some callers leave before they are answered.
func (w *world) put(ctx context.Context, c *caller, q question) (failed string, err error) {
	w.mu.Lock()
	if _, asked := w.first[q.path]; !asked {
		w.first[q.path] = time.Now()
	}
	w.mu.Unlock()
	call, leave := context.WithCancel(ctx)
	defer leave()
	if !c.patient && c.rand.IntN(30) == 0 {
		impatient := time.AfterFunc(time.Duration(c.rand.IntN(int(100*time.Millisecond))), leave)
		defer impatient.Stop()
	}
	a, err := c.get(call, q.path)
	if err == nil {
		failed, err = w.judge(q, a)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case call.Err() != nil:
		return "", errBroke
	case errors.Is(err, errBroke):
		w.counts.broke++
	case err != nil:
		w.wrong("%s of %s, asked at %s and answered after %s, for the first time %s before: %v", q.op, q.path,
			a.sent.Sub(w.began).Round(time.Millisecond), a.came.Sub(a.sent).Round(time.Millisecond), a.sent.Sub(w.first[q.path]).Round(time.Millisecond), err)
	case failed != "":
		w.counts.failed[failed]++
		w.recent[q.path] = q
	default:
		w.counts.answered[q.op]++
		w.recent[q.path] = q
	}
	return failed, err
}

// wrong notes a promise that was broken. It is called with the lock held.
func (w *world) wrong(format string, args ...any) {
	const most = 10
	if len(w.faults) < most {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// shows is an error until a process has a line among its metrics.
func shows(ctx context.Context, url, line string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: deadline}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(text, []byte(line)) {
		err = fmt.Errorf("%s does not show %s", url, line)
	}
	return err
}
