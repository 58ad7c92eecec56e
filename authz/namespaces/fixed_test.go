package namespaces_test

import (
	"testing"

	"hangar.io/glidepath/authz/namespaces"
)

func TestAFixedSetIsResolvedAsAnIndexIs(t *testing.T) {
	f := namespaces.Fixed{"app-a-cicd": true, "infra-b-cicd": true, "app-c-cicd": true, "infra-c-cicd": true}
	for app, want := range map[string]struct {
		name, other string
		exists      bool
	}{
		"a": {"app-a-cicd", "", true}, "b": {"infra-b-cicd", "", true}, "c": {"app-c-cicd", "infra-c-cicd", true}, "d": {"app-d-cicd", "", false},
	} {
		r, err := f.Resolve(app)
		if err != nil || r.Namespace.Name != want.name || r.Other.Name != want.other || r.Exists() != want.exists {
			t.Errorf("%s: %+v, %v", app, r, err)
		}
	}
}
