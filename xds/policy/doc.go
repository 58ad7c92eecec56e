// Package policy owns the route policy: a small YAML file in which operators
// of the platform say what the contract does not, such as how long an
// operation may take. It reads the file strictly (what it does not know it
// refuses, with the line and the column) and watches it for changes.
//
//	version: 1
//	defaults:
//	  timeout: 30s
//	backends:
//	  livehub:
//	    timeout: 10s
//	operations:
//	  listLive:
//	    timeout: 5s
//	    rateLimit: {requests: 60, per: 1m, burst: 20}
//
// What is said of an operation wins over what is said of its backend, and
// that over the defaults.
package policy
