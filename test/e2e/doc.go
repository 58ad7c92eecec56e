// Package e2e holds what is proved on the whole gateway: the real Envoy, API
// server, etcd and Redis, and the gateway's own processes, each a process of
// its own. Every answer is checked against the contract as it passes.
package e2e
