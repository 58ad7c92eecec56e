package kube

import (
	"net/http"
	"strings"
)

// SpanName names the span of a request to the API server by what it does, as
// its audit log would: "list pipelineruns", "create tokenreviews". No name of
// an object or a namespace is in it.
func SpanName(r *http.Request) string {
	resource, single := resourceOf(r.URL.Path)
	if resource == "" {
		return r.Method
	}
	verb := strings.ToLower(r.Method)
	switch {
	case r.Method == http.MethodPost:
		verb = "create"
	case r.Method == http.MethodGet && !single:
		verb = "list"
	}
	return verb + " " + resource
}

// resourceOf reads /api/v1/... and /apis/GROUP/VERSION/...: what follows is a
// resource, its name and a subresource, in a namespace or in none.
func resourceOf(path string) (resource string, single bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2], true
	}
	return parts[0], len(parts) > 1
}
