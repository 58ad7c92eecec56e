package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/renewal"
)

// What callers send in its place reaches no backend.
func TestATicketIsTheEdgesOwnAndInNoLog(t *testing.T) {
	const own = "a-ticket-that-a-caller-made"
	forgery := []change{header("X-Glidepath-Renewal", own), header("x-glidepath-renewal", own+"-again")}
	for op, want := range map[string]int{"streamEvents": 1, "listReleases": 0, "getRelease": 0} {
		before := len(planned.Requests())
		for _, way := range []way{service(), peopleRoute()} {
			if a := way.send(t, false, http.MethodGet, calls[op], append(forgery, as("reader"))...); a.status != http.StatusOK {
				t.Fatalf("%s by %s: %d %.200s", op, way.name, a.status, a.body)
			}
		}
		arrived := planned.Requests()[before:]
		if len(arrived) != 2 {
			t.Fatalf("%s: the backend got %d requests", op, len(arrived))
		}
		for _, r := range arrived {
			tickets := r.Header.Values(renewal.Header)
			if len(tickets) != want {
				t.Fatalf("%s: the backend got %d tickets, want %d", op, len(tickets), want)
			}
			for _, ticket := range tickets {
				notLogged(t, ticket)
			}
			if strings.Contains(strings.Join(tickets, " "), own) {
				t.Errorf("%s: the backend got what the caller sent", op)
			}
		}
	}
	notLogged(t, own)
	// A backend takes one ticket and no more, so a caller's would show here.
	x := newTask(t, "shop", "e2e-forged-ticket")
	s, _ := openAt(t, gw, x.path, append(forgery, as("reader"))...)
	x.write("one")
	s.shows(t, "a stream whose caller sent a ticket")
	if a := get(t, calls["listReleases"], as("reader")); a.header.Get(renewal.Header) != "" {
		t.Error("an answer has a ticket")
	}
}

// notLogged fails the test when something is in a log of the gateway.
func notLogged(t *testing.T, secret string) {
	t.Helper()
	linesAfter(t, func(line) bool { return false })
	for _, file := range logs(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, secret) || strings.Contains(text, secret[len(secret)-min(len(secret), 40):]) {
			t.Errorf("%s has a ticket", file)
		}
	}
}

func TestRenewalsAreOnNoWayIn(t *testing.T) {
	inside := gw.RenewURLs()[0]
	if got := status(t, client, http.MethodGet, inside+renewal.EpochPath); got != http.StatusOK {
		t.Fatalf("where streams are renewed, the epoch is %d", got)
	}
	if got := status(t, client, http.MethodPost, inside+renewal.RenewPath); got != http.StatusBadRequest {
		t.Fatalf("where streams are renewed, a request for nothing is %d", got)
	}
	_, wide := clusterGateway(t)
	for _, w := range []way{service(), peopleRoute(), wide, serviceProxy(t)} {
		for _, path := range []string{renewal.RenewPath, renewal.EpochPath, "/v1" + renewal.RenewPath, "/v1/.." + renewal.EpochPath} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for _, caller := range []string{"reader", "operator"} {
					if a := w.send(t, false, method, path, as(caller)); a.status != http.StatusNotFound {
						t.Errorf("%s: %s %s is %d %.200s", w.name, method, path, a.status, a.body)
					}
				}
			}
		}
	}
}
