// Package denylist owns the emergency deny-list: a file in which operators name
// users, people and groups who may do nothing for now, whatever the cluster
// says. It only ever takes away.
//
//	version: "1"
//	users:
//	  - system:serviceaccount:shop:ci
//	people:
//	  - name: ana
//	    reason: laptop stolen, ticket 4711
//	    until: 2026-12-01T00:00:00Z
//	groups:
//	  - system:serviceaccounts:shop
package denylist
