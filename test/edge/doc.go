// Package edge holds the tests of the edge by itself: a real Envoy, configured
// by a real xds, with an authz and backends that say what a test wants. What
// the whole gateway does together is in package e2e.
package edge
