// Package tools puts the programs that development and tests run - Envoy, Redis, etcd and the Kubernetes API server - into
// .tools/bin, each pinned by version and hash in its folder under deploy/tools. What is there already costs a look at a stamp.
package tools
