// Package explain says why the failed TaskRuns of an archived run failed: the
// step that failed, and which of the failures that the contract knows its log or
// its condition shows.
//
// A log is what anybody made a step print. It is read once, line by line, and
// never held; a line costs one pass over its bytes, and a regular expression
// only where one of the words that it cannot do without stands in the line. What
// that may cost in all is bounded for each log (see maxTested).
//
// Its parts: catalogue.go compiles what the contract knows, literal.go finds the
// words; taskrun.go says what a TaskRun tells by itself; lines.go and section.go read a
// log; match.go holds its lines against the catalogue; explain.go puts them
// together.
package explain
