package life_test

import (
	"testing"

	"hangar.io/glidepath/internal/simulator/life"
)

func TestAppOf(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		"app-gate-api-cicd": "gate-api", "infra-postgres-cicd": "postgres", "app-cicd-cicd": "cicd",
		"reporting": "", "app-gate-api": "", "team-gate-api-cicd": "",
	} {
		if got := life.AppOf(namespace); got != want {
			t.Errorf("%s is of %q, want %q", namespace, got, want)
		}
	}
}
