package namespaces_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/metadata"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/namespaces"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start gives an index of the fake's namespaces, synced.
func start(t *testing.T, s *apifake.Server) *namespaces.Index {
	t.Helper()
	client, err := metadata.NewForConfig(s.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	x, err := namespaces.NewIndex(client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-x.Synced():
	case <-time.After(30 * time.Second):
		t.Fatal("not synced")
	}
	return x
}

func resolve(t *testing.T, x *namespaces.Index, app string) namespaces.Resolution {
	t.Helper()
	r, err := x.Resolve(app)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually waits for the watch to deliver.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}

func ns(name string) namespaces.Namespace {
	if name == "" {
		return namespaces.Namespace{}
	}
	return namespaces.Namespace{Name: name, UID: "uid-of-" + name}
}

// rule: R073
func TestResolve(t *testing.T) {
	var s apifake.Server
	for _, name := range []string{
		"app-shop-cicd", "infra-postgres-cicd", "app-both-cicd", "infra-both-cicd", "app-ending-cicd",
		"app-old-cicd", "infra-old-cicd", "app-new-cicd", "infra-new-cicd", "app-gone-cicd", "infra-gone-cicd",
		"shop", "app-half", "app--cicd", "kube-system", "app-app-nested-cicd-cicd",
	} {
		s.AddNamespace(name)
	}
	for _, name := range []string{"app-ending-cicd", "app-old-cicd", "infra-new-cicd", "app-gone-cicd", "infra-gone-cicd"} {
		s.EndNamespace(name)
	}
	x := start(t, &s)
	missing := func(app string) namespaces.Resolution {
		return namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd"}}
	}
	for name, tc := range map[string]struct {
		app  string
		want namespaces.Resolution
	}{
		"an app":                               {"shop", namespaces.Resolution{Namespace: ns("app-shop-cicd")}},
		"an InfraService":                      {"postgres", namespaces.Resolution{Namespace: ns("infra-postgres-cicd")}},
		"neither":                              {"nothing", missing("nothing")},
		"both":                                 {"both", namespaces.Resolution{Namespace: ns("app-both-cicd"), Other: ns("infra-both-cicd")}},
		"an app that is being deleted":         {"ending", namespaces.Resolution{Namespace: ns("app-ending-cicd")}},
		"an app being deleted gives way":       {"old", namespaces.Resolution{Namespace: ns("infra-old-cicd")}},
		"an InfraService being deleted, too":   {"new", namespaces.Resolution{Namespace: ns("app-new-cicd")}},
		"both being deleted":                   {"gone", namespaces.Resolution{Namespace: ns("app-gone-cicd"), Other: ns("infra-gone-cicd")}},
		"a name without the ending":            {"half", missing("half")},
		"a namespace of another kind":          {"kube-system", missing("kube-system")},
		"a name that looks like a namespace":   {"app-nested-cicd", namespaces.Resolution{Namespace: ns("app-app-nested-cicd-cicd")}},
		"a part of a name that looks like one": {"nested", missing("nested")},
	} {
		t.Run(name, func(t *testing.T) {
			got := resolve(t, x, tc.app)
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if got.Exists() != (tc.want.Namespace.UID != "") || got.Ambiguous() != (tc.want.Other.Name != "") {
				t.Errorf("exists %v, ambiguous %v", got.Exists(), got.Ambiguous())
			}
		})
	}
}

func TestTheIndexFollowsTheCluster(t *testing.T) {
	var s apifake.Server
	x := start(t, &s)
	if resolve(t, x, "shop").Exists() {
		t.Fatal("an app before there is any")
	}
	s.AddNamespace("app-shop-cicd")
	eventually(t, "the new app", func() bool { return resolve(t, x, "shop").Exists() })
	s.AddNamespace("infra-shop-cicd")
	eventually(t, "the second namespace", func() bool { return resolve(t, x, "shop").Ambiguous() })
	s.RemoveNamespace("app-shop-cicd")
	eventually(t, "only the second", func() bool { return resolve(t, x, "shop").Namespace == ns("infra-shop-cicd") })
	if x.Len() != 1 {
		t.Errorf("%d namespaces are known", x.Len())
	}
}

func TestNothingIsResolvedBeforeEveryNamespaceWasRead(t *testing.T) {
	client, err := metadata.NewForConfig((&apifake.Server{}).Start(t))
	if err != nil {
		t.Fatal(err)
	}
	x, err := namespaces.NewIndex(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Ready(); !errors.Is(err, namespaces.ErrNotSynced) {
		t.Errorf("ready: %v", err)
	}
	if r, err := x.Resolve("shop"); !errors.Is(err, namespaces.ErrNotSynced) || r.Exists() || r.Namespace.Name != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	select {
	case <-x.Synced():
		t.Error("synced before it ran")
	default:
	}
}

func TestOnlyWhatIsUsedOfANamespaceIsKept(t *testing.T) {
	var s apifake.Server
	s.AddNamespace("app-shop-cicd")
	x := start(t, &s)
	kept := x.Kept("app-shop-cicd")
	if kept == nil || kept.Name != "app-shop-cicd" || kept.UID == "" {
		t.Fatalf("got %+v", kept)
	}
	if len(kept.Labels) != 0 || len(kept.ManagedFields) != 0 || len(kept.Annotations) != 0 {
		t.Errorf("more is kept than is used: %+v", kept)
	}
}

func TestResolvingTakesTheSameWorkWhetherThereIsAnAppOrNot(t *testing.T) {
	var s apifake.Server
	s.AddNamespace("app-shop-cicd")
	x := start(t, &s)
	work := func(app string) float64 {
		return testing.AllocsPerRun(200, func() { resolve(t, x, app) })
	}
	if there, missing := work("shop"), work("gone"); there != missing {
		t.Errorf("%v allocations for an app, %v for none", there, missing)
	}
}
