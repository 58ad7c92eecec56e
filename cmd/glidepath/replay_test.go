package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/authz/replay"
)

// past are lines of calls to the sample fleet, as its roles decide them.
const past = `{"msg":"audit","op":"listRuns","app":"gate-api","caller":"system:serviceaccount:glidepath-demo:reader","decision":"allow"}
{"msg":"audit","op":"listRuns","app":"gate-api","caller":"system:serviceaccount:glidepath-demo:app-reader","decision":"allow"}
{"msg":"audit","op":"listRuns","app":"shop","caller":"system:serviceaccount:glidepath-demo:app-reader","decision":"deny","rule":"GP-AUTHZ-001"}
{"msg":"audit","op":"listRuns","app":"made-upp","caller":"system:serviceaccount:glidepath-demo:reader","decision":"deny","rule":"GP-API-404"}
{"msg":"audit","op":"cancelPipelineRun","app":"postgres","caller":"system:serviceaccount:glidepath-demo:delegate","onBehalfOf":"ana","decision":"allow"}
{"msg":"audit","op":"listLiveRuns","caller":"system:serviceaccount:glidepath-demo:stranger","decision":"deny","rule":"GP-AUTHZ-001"}
`

// roles is what a proposal of the test makes of them: app-reader loses gate-api
// and gains shop by a role that aggregates another, reader stays, and the
// delegate has nothing.
const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: runs, labels: {to-readers: "true"}}
rules: [{apiGroups: [glidepath.hangar.io], resources: [runs], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-readers: "true"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{kind: ServiceAccount, namespace: glidepath-demo, name: reader}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: app-shop-cicd}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{kind: ServiceAccount, namespace: glidepath-demo, name: app-reader}]
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// replayed runs the command and gives its report and its exit code.
func replayed(t *testing.T, args ...string) (replay.Report, int, error) {
	t.Helper()
	out, err := run(t, append([]string{"replay", "-o", "json"}, args...)...)
	code := 0
	if coder, ok := errors.AsType[exit](err); ok {
		code = coder.ExitCode()
	}
	var r replay.Report
	if out != "" {
		if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
			t.Fatalf("%v: %s", jerr, out)
		}
	}
	return r, code, err
}

func TestReplayAgainstTheLiveCluster(t *testing.T) {
	live := []string{"--live", "--kubeconfig=" + cluster.Kubeconfig}
	r, code, err := replayed(t, append(live, write(t, "audit.log", past))...)
	if code != 0 || err != nil || r.Judged != 6 || len(r.Differences) != 0 {
		t.Errorf("the same roles: %d, %v, %+v", code, err, r)
	}
	otherwise := strings.NewReplacer(`"allow"`, `"deny","rule":"GP-AUTHZ-001"`, `"deny","rule":"GP-AUTHZ-001"`, `"allow"`).Replace(past)
	r, code, err = replayed(t, append(live, write(t, "audit.log", otherwise))...)
	if code != 1 || err == nil || r.Judged != 6 || len(r.Differences) != 5 {
		t.Errorf("other decisions: %d, %v, %+v", code, err, r)
	}
	// The same, for people.
	text, err := run(t, append([]string{"replay", write(t, "audit.log", otherwise)}, live...)...)
	if err == nil || !strings.Contains(text, "Allowed then, refused now") || !strings.Contains(text, "Refused then, allowed now") || !strings.Contains(text, "(for a person)") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestReplayAgainstProposedRoles(t *testing.T) {
	r, code, err := replayed(t, "--manifests="+write(t, "roles.yaml", roles), write(t, "audit.log", past))
	if code != 1 || err == nil {
		t.Fatalf("%d, %v, %+v", code, err, r)
	}
	got := map[string]string{}
	for _, d := range r.Differences {
		got[strings.TrimPrefix(d.Caller, "system:serviceaccount:glidepath-demo:")+" "+d.Op+" "+d.App] = d.Now.String()
	}
	want := map[string]string{
		"app-reader listRuns gate-api":        "GP-AUTHZ-001",
		"app-reader listRuns shop":            "allowed",
		"delegate cancelPipelineRun postgres": "GP-AUTHZ-001",
	}
	if len(got) != len(want) || len(r.Differences) != len(want) {
		t.Errorf("got %v", got)
	}
	for what, now := range want {
		if got[what] != now {
			t.Errorf("%s: %q, want %q", what, got[what], now)
		}
	}
}

func TestReplayThatCannotBeDoneEndsWithItsOwnCode(t *testing.T) {
	good, proposal := write(t, "audit.log", past), "--manifests="+write(t, "roles.yaml", roles)
	live := "--kubeconfig=" + cluster.Kubeconfig
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a file that is not there":       {[]string{"/nonexistent", "--live", live}, "no such file"},
		"not one audit line":             {[]string{write(t, "x", "{\n{\n"), "--live", live}, "not one audit line among 2 lines"},
		"manifests of something else":    {[]string{good, "--manifests=" + write(t, "s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")}, "only Namespaces"},
		"a scratch cluster in use":       {[]string{good, proposal, "--scratch-kubeconfig=" + cluster.Kubeconfig}, "is no scratch cluster"},
		"groups that are none":           {[]string{good, "--live", live, "--groups=" + write(t, "g", "- a")}, "reading groups"},
		"a kubeconfig that is not there": {[]string{good, "--live", "--kubeconfig=/nonexistent"}, "configuring"},
		"more kinds than may be counted": {[]string{good, "--live", live, "--max-kinds=2"}, "not every call"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, code, err := replayed(t, tc.args...); code != 2 || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %d, %v, want %q in it", code, err, tc.want)
			}
		})
	}
	for name, args := range map[string][]string{
		"against nothing":        {good},
		"against two":            {good, "--live", proposal},
		"a scratch for no roles": {good, "--live", "--scratch-kubeconfig=x"},
		"no concurrency":         {good, "--live", "--concurrency=0"},
		"no lines":               {"--live"},
	} {
		if _, _, err := replayed(t, args...); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
