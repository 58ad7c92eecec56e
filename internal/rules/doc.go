// Package rules owns the link between the rules of the API (docs/rules.tsv) and
// the tests that prove them.
//
// A test claims a rule with a comment inside the test function or in its doc
// comment:
//
//	// rule: R045, R046
//
// A claim means that the test fails when the rule is broken. The package reads
// the rules, finds the claims, and reports per area what is proved and what is
// not. It fails on a claim of an unknown rule, on a claim outside a test, and on
// a rule without a claim in an area declared finished (docs/rules.done).
package rules
