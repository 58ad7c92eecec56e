// Package bench measures the gateway: it starts the real parts, puts load on them, and prints each figure of the design's
// targets as a line. docs/performance.md says how each figure is taken.
//
// A figure that compares is taken in runs that take turns, and comes with two more lines: the same comparison of the base
// with itself (_self), and how far one run of the base is from the next (_noise).
package bench
