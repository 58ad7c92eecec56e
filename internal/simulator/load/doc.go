// Package load fills a cluster with runs and changes them at a steady, measured pace: namespaces × runs × changes a second,
// for benches and for tests of what many changes do.
//
// Every run leads a life of package life, one step after another and never an illegal one; only the pace is the load's. A
// run that has ended is removed and another takes its place, so that the number of runs stays. What the load makes it
// labels, and it removes nothing else.
//
// The seed decides every run's name, pipeline, fate and steps. How the runs' steps interleave it does not decide.
package load
