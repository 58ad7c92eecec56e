package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The shared forms of the header around a good token, through the real Envoy
// and API server, in both headers that may carry one.
//
// rule: R388, R389
func TestTheSharedFormsOfTheTokensHeader(t *testing.T) {
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(cases, "http", "jwt", "authorization-header-forms.json"))
	if err != nil {
		t.Fatal(err)
	}
	var forms []struct{ Value, Expected string }
	if err := json.Unmarshal(raw, &forms); err != nil {
		t.Fatal(err)
	}
	if len(forms) < 20 {
		t.Fatalf("only %d forms", len(forms))
	}
	for _, f := range forms {
		value := strings.NewReplacer("<T>", tokens["reader"], "<T2>", tokens["stranger"], `\u0000`, "\x00").Replace(f.Value)
		for _, name := range []string{"Authorization", "X-Glidepath-Authorization"} {
			a := rawCall(t, "GET /v1/whoami HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n"+name+": "+value+"\r\n\r\n")
			accepted := a.status == http.StatusOK
			if accepted && !strings.Contains(string(a.body), username(t, "reader")) {
				t.Errorf("%s: %q is taken for %s", name, f.Value, a.body)
			}
			if accepted && f.Expected == "reject" || !accepted && f.Expected == "accept" {
				t.Errorf("%s: %q is answered %d, want it to be %sed", name, f.Value, a.status, f.Expected)
			}
			if accepted {
				continue
			}
			if rule := a.problem(t).Rule; rule != "GP-AUTH-001" && rule != "GP-AUTH-002" && rule != "GP-EDGE-400" {
				t.Errorf("%s: %q is refused by %s", name, f.Value, rule)
			}
		}
	}
}

// rawCall sends these bytes to the edge and reads one answer.
func rawCall(t *testing.T, request string) answer {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(gw.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: b}
}
