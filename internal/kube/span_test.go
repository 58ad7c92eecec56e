package kube_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/kube"
)

func TestARequestIsNamedByWhatItDoes(t *testing.T) {
	for target, want := range map[string]string{
		"GET /apis/tekton.dev/v1/namespaces/app-shop-cicd/pipelineruns?limit=500":       "list pipelineruns",
		"GET /apis/tekton.dev/v1/taskruns":                                              "list taskruns",
		"GET /apis/tekton.dev/v1/namespaces/app-shop-cicd/pipelineruns/a":               "get pipelineruns",
		"PATCH /apis/tekton.dev/v1/namespaces/app-shop-cicd/pipelineruns/a":             "patch pipelineruns",
		"POST /apis/tekton.dev/v1/namespaces/app-shop-cicd/pipelineruns":                "create pipelineruns",
		"POST /apis/authentication.k8s.io/v1/tokenreviews":                              "create tokenreviews",
		"GET /api/v1/namespaces/app-shop-cicd/pods/a/log?container=step-a&follow=false": "get pods/log",
		"GET /api/v1/namespaces":                                                        "list namespaces",
		"GET /api/v1/namespaces/app-shop-cicd":                                          "get namespaces",
		"GET /version":                                                                  "GET",
	} {
		method, url, _ := strings.Cut(target, " ")
		if got := kube.SpanName(httptest.NewRequest(method, url, nil)); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
