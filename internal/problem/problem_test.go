package problem_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/internal/audit"
	"hangar.io/glidepath/internal/problem"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func write(t *testing.T, err error) (*http.Response, problem.Body) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/live", nil)
	r.Header.Set("Traceparent", traceparent)
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"x"`)
	w.Header().Set("Content-Encoding", "gzip")
	problem.Write(w, r, err)
	var b problem.Body
	if jerr := json.Unmarshal(w.Body.Bytes(), &b); jerr != nil {
		t.Fatalf("the answer is no JSON: %v: %s", jerr, w.Body)
	}
	return w.Result(), b
}

func TestEveryRuleHasOneStatusThatItsNameEndsWithWhereItSaysOne(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range problem.All() {
		if seen[r.ID] {
			t.Errorf("%s stands twice in the table", r.ID)
		}
		seen[r.ID] = true
		if r.Message == "" || r.Status < 400 {
			t.Errorf("%s: %+v", r.ID, r)
		}
		end := r.ID[strings.LastIndex(r.ID, "-")+1:]
		if strings.Contains(r.ID, "-AUTH") {
			continue
		}
		if end != strconv.Itoa(r.Status) {
			t.Errorf("%s answers %d", r.ID, r.Status)
		}
	}
	if !slices.IsSortedFunc(problem.EdgeRules(), func(a, b problem.Rule) int { return a.Status - b.Status }) {
		t.Error("the edge's rules are not in order of status")
	}
}

func TestAnAnswerSaysRuleMessageHintAndTrace(t *testing.T) {
	res, body := write(t, fmt.Errorf("reading: %w", problem.New(problem.BadRequest, "limit is no number").WithHint("1 to 1000")))
	want := problem.Body{Rule: "GP-API-400", Message: "limit is no number", Hint: "1 to 1000", TraceID: "0af7651916cd43dd8448eb211c80319c"}
	if res.StatusCode != http.StatusBadRequest || body != want {
		t.Errorf("got %d %+v, want 400 %+v", res.StatusCode, body, want)
	}
	if ct := res.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q", ct)
	}
	for _, h := range []string{"ETag", "Content-Encoding"} {
		if v := res.Header.Get(h); v != "" {
			t.Errorf("%s: %s describes a body that was not sent", h, v)
		}
	}
}

func TestTheCauseIsNeverShown(t *testing.T) {
	for name, err := range map[string]error{
		"a cause":          problem.New(problem.SourceFailed, "").WithCause(errors.New("dial 10.0.0.1: hunter2")),
		"an unknown error": errors.New("dial 10.0.0.1: hunter2"),
		"an empty error":   (&problem.Error{}).WithCause(errors.New("hunter2")),
	} {
		t.Run(name, func(t *testing.T) {
			res, body := write(t, err)
			if res.StatusCode != http.StatusBadGateway || body.Rule != "GP-API-502" || body.Message == "" {
				t.Errorf("got %d %+v, want 502 GP-API-502", res.StatusCode, body)
			}
			if all := fmt.Sprint(body, res.Header); strings.Contains(all, "hunter2") {
				t.Errorf("the cause is shown: %s", all)
			}
			if !strings.Contains(err.Error(), "hunter2") {
				t.Error("the log's form lost the cause")
			}
		})
	}
}

func TestA401Challenges(t *testing.T) {
	for _, tc := range []struct {
		rule problem.Rule
		want string
	}{
		{problem.AuthNoToken, `Bearer realm="glidepath"`},
		{problem.AuthBadToken, `Bearer realm="glidepath", error="invalid_token"`},
		{problem.AuthzDenied, ""},
	} {
		res, _ := write(t, problem.New(tc.rule, ""))
		if got := res.Header.Get("WWW-Authenticate"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.rule.ID, got, tc.want)
		}
	}
}

func TestTheAuditHeaderSaysTheRuleAndTheMessage(t *testing.T) {
	res, _ := write(t, problem.New(problem.NotFound, "no such app"))
	raw, err := base64.StdEncoding.DecodeString(res.Header.Get(audit.Header))
	if err != nil {
		t.Fatal(err)
	}
	var v structpb.Value
	if err := proto.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	got := v.GetStructValue().AsMap()
	if got["rule"] != "GP-API-404" || got["error"] != "no such app" {
		t.Errorf("got %v", got)
	}
}

func TestATraceIDComesFromAWellFormedTraceparentOnly(t *testing.T) {
	for in, want := range map[string]string{
		traceparent: "0af7651916cd43dd8448eb211c80319c",
		strings.Replace(traceparent, "00-", "01-", 1) + "-more": "0af7651916cd43dd8448eb211c80319c",
		"": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd-b7ad6b7169203331-01":                 "",
		"00-0af7651916cd43dd8448eb211c80319c":                     "",
	} {
		if got := problem.TraceID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzTraceID(f *testing.F) {
	f.Add(traceparent)
	f.Fuzz(func(t *testing.T, s string) {
		id := problem.TraceID(s)
		if id != "" && (len(id) != 32 || strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })) {
			t.Errorf("%q gave %q", s, id)
		}
	})
}
