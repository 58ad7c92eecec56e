// Package xds is the control plane of the edge. It builds what Envoy serves
// from the contract (package api), the route policy (package policy) and the
// process's options, and keeps Envoy supplied with it over a Unix socket:
//
//	contract + policy + options → model → translate → server → Envoy
//
// An edge without xds keeps serving what it was told last; an xds that cannot
// build tells Envoy what it told last.
package xds
