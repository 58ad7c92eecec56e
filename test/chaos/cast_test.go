package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/fleet"
)

const (
	app, otherApp = fleet.AppGateAPI, fleet.AppShop
	namespace     = "app-" + app + "-cicd"

	// rememberedFor is how long authz may go by a read's decision that has changed: ten seconds from its review, and the
	// review's own time.
	rememberedFor = 14 * time.Second
)

// part is one caller with one kind of call.
type part struct {
	name            string
	user            string // as the API server knows the caller; empty for nobody
	token           string
	method, op, app string
	path            string
	// due says whether a call that began then may be allowed.
	due func(began time.Time) bool
	// always says that every call is due.
	always bool
	// refusals are the rules that may refuse it while no part of the gateway is away.
	refusals []string
	// right says what is wrong with the body of a 200.
	right func(body []byte) error
}

// newCast gives the parts that are played throughout. Each is due by what the sample fleet grants, or is not.
func newCast(t *testing.T) []*part {
	t.Helper()
	tokens, users := map[string]string{}, map[string]string{}
	for _, c := range fleet.Callers() {
		token, err := fleet.Token(t.Context(), apiServer.Admin, c, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		tokens[c.Name], users[c.Name] = token, c.Username()
	}
	const forbidden, unknown = "GP-AUTHZ-001", "GP-AUTH-002"
	cast := []*part{
		{name: "a reader reads an app", user: "reader", op: "listLive", app: app, always: true, right: onlyFrom(namespace)},
		{name: "a reader reads the fleet", user: "reader", op: "listLiveRuns", always: true},
		{name: "a reader of one app reads it", user: "app-reader", op: "listLive", app: app, always: true, right: onlyFrom(namespace)},
		{name: "a stranger asks who they are", user: "stranger", op: "whoami", always: true, right: isUser(users["stranger"])},
		{name: "an operator writes", user: "operator", op: "cancelPipelineRun", app: app, always: true},
		{name: "a reader of one app reads another", user: "app-reader", op: "listLive", app: otherApp, refusals: []string{forbidden}},
		{name: "a reader of one app reads the fleet", user: "app-reader", op: "listLiveRuns", refusals: []string{forbidden}},
		{name: "a stranger reads", user: "stranger", op: "listLive", app: app, refusals: []string{forbidden}},
		{name: "an operator reads", user: "operator", op: "listLive", app: app, refusals: []string{forbidden}},
		{name: "a reader writes", user: "reader", op: "cancelPipelineRun", app: app, refusals: []string{forbidden}},
		{name: "nobody reads", op: "listLive", app: app, refusals: []string{"GP-AUTH-001"}},
		{name: "somebody with a forged token writes", token: forged(tokens["operator"]), op: "cancelPipelineRun", app: app, refusals: []string{unknown}},
	}
	for _, p := range cast {
		if p.user != "" {
			p.token, p.user = tokens[p.user], users[p.user]
		}
		p.due = func(time.Time) bool { return p.always }
		p.complete()
	}
	return cast
}

// complete fills in how the operation is called.
func (p *part) complete() {
	switch p.op {
	case "whoami":
		p.method, p.path = "GET", "/v1/whoami"
	case "listLiveRuns":
		p.method, p.path = "GET", "/v1/live"
	case "listLive":
		p.method, p.path = "GET", "/v1/apps/"+p.app+"/live"
	case "cancelPipelineRun":
		p.method, p.path = "POST", "/v1/apps/"+p.app+"/pipelineruns/ci-1/cancel"
	}
}

func (p *part) writes() bool { return p.method == "POST" }

// forged gives a token whose signature is not the API server's.
func forged(token string) string {
	last := len(token) - 10
	other := byte('A')
	if token[last] == other {
		other = 'B'
	}
	return token[:last] + string(other) + token[last+1:]
}

// onlyFrom wants runs of one namespace, and some.
func onlyFrom(namespace string) func([]byte) error {
	return func(body []byte) error {
		var lists map[string][]struct {
			Metadata struct{ Namespace string } `json:"metadata"`
		}
		if err := json.Unmarshal(body, &lists); err != nil {
			return err
		}
		if len(lists["pipelineRuns"]) == 0 {
			return fmt.Errorf("no runs: %.200s", body)
		}
		for kind, list := range lists {
			for _, o := range list {
				if o.Metadata.Namespace != namespace {
					return fmt.Errorf("%s of namespace %s", kind, o.Metadata.Namespace)
				}
			}
		}
		return nil
	}
}

func isUser(name string) func([]byte) error {
	return func(body []byte) error {
		var who struct{ Username string }
		if err := json.Unmarshal(body, &who); err != nil {
			return err
		}
		if who.Username != name {
			return fmt.Errorf("the caller is said to be %q", who.Username)
		}
		return nil
	}
}

// leaver is a caller whose rights on the app are taken away in the middle of a fault.
type leaver struct {
	name  string // of its ServiceAccount
	user  string
	parts []*part // reads and writes

	mu   sync.Mutex
	left time.Time // when the API server was first seen to refuse; zero while the rights last
}

// newLeaver makes a caller that may read and write the app.
func newLeaver(t *testing.T, name string) *leaver {
	t.Helper()
	ctx, kube := t.Context(), apiServer.Client
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := kube.CoreV1().ServiceAccounts(fleet.DemoNamespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{fleet.ReaderRole, fleet.OperatorRole} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: fleet.DemoNamespace}},
		}
		if _, err := kube.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, err := apiServer.Token(ctx, fleet.DemoNamespace, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l := &leaver{name: name, user: "system:serviceaccount:" + fleet.DemoNamespace + ":" + name}
	for _, p := range []*part{
		{name: name + " reads", op: "listLive", due: l.mayRead, right: onlyFrom(namespace)},
		{name: name + " writes", op: "cancelPipelineRun", due: l.mayWrite},
	} {
		p.user, p.token, p.app, p.refusals = l.user, token, app, []string{"GP-AUTHZ-001"}
		p.complete()
		l.parts = append(l.parts, p)
	}
	return l
}

// leave takes the rights away and returns when the API server knows.
func (l *leaver) leave(t *testing.T) {
	t.Helper()
	for _, role := range []string{fleet.ReaderRole, fleet.OperatorRole} {
		if err := apiServer.Client.RbacV1().RoleBindings(namespace).Delete(t.Context(), l.name+"-"+role, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the API server refuses "+l.name, func() error {
		for verb, resource := range map[string]string{"list": "runs", "cancel": "runs"} {
			if allowed, err := reviewed(t.Context(), l.user, verb, resource); err != nil || allowed {
				return fmt.Errorf("may %s %s: %v, %w", verb, resource, allowed, err)
			}
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = time.Now()
}

func (l *leaver) mayRead(began time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.IsZero() || began.Before(l.left.Add(rememberedFor))
}

// mayWrite: a write's decision is never remembered, so that the very next one is refused.
func (l *leaver) mayWrite(began time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left.IsZero() || began.Before(l.left)
}

func reviewed(ctx context.Context, user, verb, resource string) (bool, error) {
	r, err := apiServer.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: "glidepath.hangar.io", Resource: resource, Namespace: namespace,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return r.Status.Allowed, nil
}
