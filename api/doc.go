// Package api is the contract of the Glidepath API.
//
// openapi.yaml is written by hand and is the only place where an operation is
// described; known-failures.yaml is that of the failures that explainRun
// recognizes. From them are generated the table that [Operations] returns (what
// the edge routes and what the authorizer asks about), the contract that
// getContract serves, and, in the packages below this one, the server
// interface and the types of each backend. A test fails while any of them is
// older than the file.
//
// The package depends on the standard library alone, so that every process can
// import it, and everything it hands out is constant: it is safe for
// concurrent use.
package api

//go:generate go run ./internal/gen
//go:generate go tool oapi-codegen -config authzapi/oapi-codegen.yaml -o authzapi/authz.gen.go openapi.yaml
//go:generate go tool oapi-codegen -config livehubapi/oapi-codegen.yaml -o livehubapi/livehub.gen.go openapi.yaml
//go:generate go tool oapi-codegen -config runsapi/oapi-codegen.yaml -o runsapi/runs.gen.go openapi.yaml
