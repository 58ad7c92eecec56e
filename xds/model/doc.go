// Package model owns what the edge is, in plain terms: its listener, its
// routes, its clusters, its limits. It knows the rules that make an edge whole
// and nothing of how Envoy is told; package translate does that.
package model
