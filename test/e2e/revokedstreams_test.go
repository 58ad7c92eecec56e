package e2e_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
)

const (
	// streamEnd is the longest that a stream may outlive the right to it, and
	// streamSlack what a busy machine may add.
	streamEnd, streamSlack = 60 * time.Second, 5 * time.Second
	// tokenTime is how long the tokens that end are good. They are made before
	// everything is ready.
	tokenTime = 30 * time.Second

	goneApp, goneNamespace = "e2e-stream", "app-e2e-stream-cicd"
	liveApp                = "gate-api"
)

// loss is one way in which a caller loses an open stream.
type loss struct {
	caller, path string // the path of a log
	live         string // or how the live stream of the app liveApp is to end
	token        string
	take         func() error // nil takes nothing: the token's time does
	reason, rule string       // of authz's line; without a reason the backend ends it by itself
	since        time.Time
	*openStream
}

// All streams are open at once at one gateway. One by the list first, since a
// change of it has all of them decided again; then authz is killed; then the
// others lose what they have at the same moment.
func TestWhoLosesTheRightToAnOpenStreamLosesTheStream(t *testing.T) {
	t.Parallel()
	own := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis})
	log, losses := prepareLosses(t, own)
	control, leave := openAt(t, own, log.path, as("reader"))
	for _, l := range losses {
		l.openIt(t, own)
	}
	log.write("one")
	control.shows(t, "at first")
	losses["right"].shows(t, "at first")

	denied := losses["list"]
	denied.lose(t, "list")
	select {
	case <-denied.ended:
	case <-time.After(callTimeout):
	}
	if took := denied.at.Sub(denied.since); denied.open() || took > 15*time.Second {
		t.Fatalf("who is denied by list had the stream for %s", took)
	}
	own.Edges[0].Authz.Kill()
	if err := own.Edges[0].Authz.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	for name, l := range losses {
		all.Go(func() {
			if l != denied {
				l.lose(t, name)
			}
			l.ends(t, name)
		})
	}
	all.Wait()
	// Longer than anything that is not renewed may stay.
	if rest := time.Until(control.opened.Add(streamEnd + 2*time.Second)); rest > 0 {
		select {
		case <-control.ended:
		case <-time.After(rest):
		}
	}
	log.write("two")
	control.shows(t, "who lost nothing")
	leave()
	lines := linesOfStreams(t, own, slices.Collect(maps.Values(losses)))
	why := streamLines(t, own.Edges[0].Authz.Log())
	for name, l := range losses {
		l.isWrittenDown(t, name, lines[l.trace], why)
	}
	noTicketIn(t, own)
}

// prepareLosses makes callers, each with a stream to lose.
func prepareLosses(t *testing.T, own *devenv.Gateway) (*task, map[string]*loss) {
	t.Helper()
	makeNamespace(t, goneNamespace)
	log, gone := newTask(t, liveApp, "e2e-stream"), newTask(t, goneApp, "e2e-stream")
	eventually(t, "authz has seen the namespace", func() bool { return call(t, "GET", own.URL+gone.path, as("reader")).status == 200 })
	secrets := gw.APIServer.Client.CoreV1().Secrets(fleet.DemoNamespace)
	secret, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-stream-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	right, unbind := streamReader(t, "e2e-stream-right", nil)
	viewer, unbindViewer := streamReader(t, "e2e-stream-viewer", nil)
	denied, _ := streamReader(t, "e2e-stream-denied", nil)
	removed, _ := streamReader(t, "e2e-stream-account", nil)
	bound, _ := streamReader(t, "e2e-stream-bound", &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID})
	now := time.Now()
	until := now.Add(tokenTime).Truncate(time.Second)
	person, err := own.Provider.Token(fleet.PersonReader, map[string]any{"iat": now.Unix() - 5, "exp": until.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	name := func(account string) string { return "system:serviceaccount:" + fleet.DemoNamespace + ":" + account }
	at := metav1.DeleteOptions{}
	return log, map[string]*loss{
		"right": {caller: name("e2e-stream-right"), token: right, reason: "revoked", rule: "GP-AUTHZ-001", path: log.path, take: func() error { unbind(); return nil }},
		"right to a live stream": {caller: name("e2e-stream-viewer"), token: viewer, reason: "revoked", rule: "GP-AUTHZ-001", live: `end {"reason":"revoked"}`, take: func() error {
			unbindViewer()
			return nil
		}},
		"account": {caller: name("e2e-stream-account"), token: removed, reason: "revoked", rule: "GP-AUTH-002", path: log.path, take: func() error {
			return gw.APIServer.Client.CoreV1().ServiceAccounts(fleet.DemoNamespace).Delete(t.Context(), "e2e-stream-account", at)
		}},
		"bound object": {caller: name("e2e-stream-bound"), token: bound, reason: "revoked", rule: "GP-AUTH-002", path: log.path, take: func() error {
			return secrets.Delete(t.Context(), secret.Name, at)
		}},
		"list": {caller: name("e2e-stream-denied"), token: denied, reason: "revoked", rule: "GP-AUTH-006", path: log.path, take: func() error {
			return own.SetDenyList("version: \"1\"\nusers: [\"" + name("e2e-stream-denied") + "\"]\n")
		}},
		"namespace": {caller: username(t, "reader"), token: tokens["reader"], reason: "revoked", rule: "GP-API-404", path: gone.path, take: func() error {
			if err := gw.APIServer.DeleteNamespace(t.Context(), goneNamespace); err != nil {
				return err
			}
			_, err := gw.APIServer.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: goneNamespace}}, metav1.CreateOptions{})
			return err
		}},
		"time of a token":                {caller: username(t, "reader"), token: timed(t, now.Add(-time.Minute), until), path: log.path, since: until},
		"time of a login token":          {caller: "people:" + fleet.PersonReader, token: person, path: log.path, since: until},
		"time of a viewer's login token": {caller: "people:" + fleet.PersonReader, token: person, live: `end {"reason":"expired"}`, since: until},
	}
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := gw.APIServer.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gw.APIServer.DeleteNamespace(cleanupContext(t), name); err != nil {
			t.Error(err)
		}
	})
}

// streamReader makes an account that may read gate-api, and gives a token of it
// that is bound to something or to nothing.
func streamReader(t *testing.T, name string, bound *authenticationv1.BoundObjectReference) (token string, unbind func()) {
	t.Helper()
	accounts := gw.APIServer.Client.CoreV1().ServiceAccounts(fleet.DemoNamespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accounts.Delete(cleanupContext(t), name, metav1.DeleteOptions{}) }) // may be gone
	unbind = bindAccount(t, fleet.ReaderRole, "app-gate-api-cicd", account(name))
	r, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token, unbind
}

// openIt opens the stream that is to be lost.
func (l *loss) openIt(t *testing.T, g *devenv.Gateway) {
	t.Helper()
	if l.live != "" {
		l.openStream = openLive(t, g, liveApp, bearer(l.token))
		return
	}
	l.openStream, _ = openAt(t, g, l.path, bearer(l.token))
}

// op is the operation whose answer the stream is.
func (l *loss) op() string {
	if l.live != "" {
		return "streamLiveRuns"
	}
	return "getLiveLogs"
}

// lose takes away what the caller has.
func (l *loss) lose(t *testing.T, name string) {
	t.Helper()
	if l.take == nil {
		return
	}
	if !l.open() {
		t.Errorf("%s: the stream ended before anything was taken away: %v", name, l.err)
	}
	l.since = time.Now()
	if err := l.take(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// ends waits for the end of the stream, and checks that it comes in time and
// that a log does not look whole, and that the last event of a live stream says
// why it ends.
func (l *loss) ends(t *testing.T, name string) {
	t.Helper()
	select {
	case <-l.ended:
		took := l.at.Sub(l.since)
		t.Logf("%s: ended after %s", name, took.Round(time.Millisecond))
		if took > streamEnd+streamSlack || took < -streamSlack {
			t.Errorf("%s: the stream ended after %s", name, took)
		}
		switch {
		case l.live == "" && l.err == nil:
			t.Errorf("%s: the log looks whole", name)
		case l.live != "" && (l.err != nil || l.last != l.live):
			t.Errorf("%s: after the event %q it ends with %v, want the event %q", name, l.last, l.err, l.live)
		}
	case <-time.After(time.Until(l.since.Add(streamEnd + streamSlack))):
		t.Errorf("%s: the stream is open", name)
	}
}

// linesOfStreams gives the edge's lines by their traces, once it has those of all.
func linesOfStreams(t *testing.T, g *devenv.Gateway, of []*loss) map[string][]line {
	t.Helper()
	var answers []answer
	for _, l := range of {
		answers = append(answers, answer{header: map[string][]string{"X-Glidepath-Trace-Id": {l.trace}}})
	}
	return linesOf(t, g, answers)
}

// isWrittenDown checks the line of the edge, and that of authz which says why.
func (l *loss) isWrittenDown(t *testing.T, name string, edge, ends []line) {
	t.Helper()
	if len(edge) != 1 {
		t.Errorf("%s: %d lines of the edge", name, len(edge))
		return
	}
	expectLine(t, edge[0], line{"op": l.op(), "tier": "T0", "status": 200.0, "decision": "allow", "caller": l.caller, "rule": nil})
	var why []line
	for _, s := range ends {
		if s["requestId"] == edge[0]["requestId"] {
			why = append(why, s)
		}
	}
	if l.reason == "" && len(why) == 0 {
		return
	}
	if len(why) != 1 {
		t.Errorf("%s: %d lines say why", name, len(why))
		return
	}
	for key, want := range map[string]string{"op": l.op(), "caller": l.caller, "reason": l.reason, "rule": l.rule} {
		if l.reason != "" && why[0][key] != want {
			t.Errorf("%s: %s is %v, not %s", name, key, why[0][key], want)
		}
	}
}

// noTicketIn looks for tickets in whatever the gateway wrote: text that opens
// with the key that seals them.
func noTicketIn(t *testing.T, g *devenv.Gateway) {
	t.Helper()
	sealer, err := ticket.NewSealer(filepath.Join(filepath.Dir(g.IdentityKeysDir()), "authz", "renewal.keys"))
	if err != nil {
		t.Fatal(err)
	}
	sealed := regexp.MustCompile(`[A-Za-z0-9_-]{100,}`)
	files := []string{g.Edges[0].Envoy.AccessLog}
	for _, part := range g.Parts() {
		files = append(files, part.Process.Log())
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range sealed.FindAllString(string(raw), -1) {
			if _, err := sealer.Open(text); err == nil {
				t.Errorf("%s has a ticket", file)
			}
		}
	}
}
